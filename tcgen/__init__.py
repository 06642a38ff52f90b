"""tcgen: tensor-contraction code generator for many-body methods."""
