# MP2 from Julia: the energy of a library beside a loop of Julia, for integrals drawn at random.
#     tcgen library mp2_closed_shell --fortran-order -e o=5 -e v=8 -o demo
#     cmake -S demo -B build && cmake --build build
#     julia mp2.jl build/libdemo.so
# Arrays of Julia have the order of Fortran, so that g[i,a,j,b] is g[i,a,j,b] of the equations.
using Random

const LIBRARY = abspath(ARGS[1])

# Structs of demo.h: their fields are in the order of the header.
struct Extents
    o::Int64
    v::Int64
end
struct Inputs
    g::Ptr{Float64}
    e_o::Ptr{Float64}
    e_v::Ptr{Float64}
end
struct Outputs
    e::Ptr{Float64}
end

fail() = error(unsafe_string(ccall((:demo_message, LIBRARY), Cstring, ())))

function mp2(g::Array{Float64,4}, e_o::Vector{Float64}, e_v::Vector{Float64})
    o, v = length(e_o), length(e_v)
    size(g) == (o, v, o, v) || throw(DimensionMismatch("g has the shape $(size(g))"))
    n = Extents(o, v)
    bytes = ccall((:demo_mp2_closed_shell_workspace_bytes, LIBRARY), Int64, (Ref{Extents}, Cint), n, 0)
    bytes < 0 && fail()
    workspace = Vector{UInt8}(undef, bytes) # aligned to 16 bytes at least
    e = zeros(1)
    # The structs hold addresses, which Julia's collector does not see.
    GC.@preserve g e_o e_v e begin
        inputs = Inputs(pointer(g), pointer(e_o), pointer(e_v))
        status = ccall((:demo_mp2_closed_shell, LIBRARY), Cint,
                       (Ref{Extents}, Ref{Inputs}, Ref{Outputs}, Ptr{UInt8}, Csize_t, Ptr{Cvoid}),
                       n, inputs, Outputs(pointer(e)), workspace, bytes, C_NULL)
    end
    status == 0 || fail()
    return e[1]
end

function loop(g, e_o, e_v)
    o, v = length(e_o), length(e_v)
    return sum((2 * g[i, a, j, b] - g[i, b, j, a]) * g[i, a, j, b] / (e_o[i] + e_o[j] - e_v[a] - e_v[b])
               for i in 1:o, a in 1:v, j in 1:o, b in 1:v)
end

function main()
    random = MersenneTwister(1)
    o, v = 3, 5
    half = randn(random, o, v, o, v)
    g = half + permutedims(half, (3, 4, 1, 2)) # (ia|jb) = (jb|ia)
    e_o, e_v = -1 .- rand(random, o), 1 .+ rand(random, v)
    energy, expected = mp2(g, e_o, e_v), loop(g, e_o, e_v)
    println("E(MP2) = ", energy, ", a loop of Julia gives ", expected)
    isapprox(energy, expected; rtol=1e-12) || error("the energies differ")
end

main()
