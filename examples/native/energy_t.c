/* (T) of the amplitudes that ccsd.f90 wrote: each process runs some parts of the program, and one sum joins them.
 *     mpirun -n 2 energy_t AMPLITUDES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <triples.h>

static void end(const char *text)
{
    fprintf(stderr, "energy_t: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static double *doubles(FILE *file, int64_t count)
{
    double *const values = malloc((size_t)(count > 0 ? count : 1)*sizeof *values);
    if (!values || fread(values, sizeof *values, (size_t)count, file) != (size_t)count) end("the file is too short");
    return values;
}

int main(int count, char **words)
{
    int rank, ranks;
    int64_t extents[2];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    FILE *const file = fopen(count > 1 ? words[1] : "water.amplitudes", "rb");
    if (!file || fread(extents, sizeof *extents, 2, file) != 2) end("the file of amplitudes cannot be read");
    const int64_t o = extents[0], v = extents[1];
    const triples_t_closed_shell_extents n = {.o = o, .v = v};

    triples_t_closed_shell_inputs in = {0};
    in.f_ov = doubles(file, o*v);
    in.t1 = doubles(file, o*v);
    in.e_o = doubles(file, o);
    in.e_v = doubles(file, v);
    in.t2 = doubles(file, o*o*v*v);
    in.v_ovoo = doubles(file, o*v*o*o);
    in.v_ovov = doubles(file, o*v*o*v);
    in.v_ovvv = doubles(file, o*v*v*v);
    fclose(file);

    double part = 0, energy = 0;
    const triples_t_closed_shell_outputs out = {.e_t = &part};
    const int64_t parts = triples_t_closed_shell_parts(&n);
    const tcgen_options options = {.threads = 1, .part = 1, .first = parts*rank/ranks, .last = parts*(rank + 1)/ranks};
    const int64_t bytes = triples_t_closed_shell_workspace_bytes(&n, options.threads);
    if (parts < 0 || bytes < 0) end(triples_message());
    void *const workspace = aligned_alloc(64, (size_t)(bytes + 63)/64*64);
    if (triples_t_closed_shell(&n, &in, &out, workspace, (size_t)bytes, &options) != TCGEN_OK) end(triples_message());
    MPI_Reduce(&part, &energy, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("E(T) = %.10f Hartree from %lld parts on %d processes\n", energy, (long long)parts, ranks);
    MPI_Finalize();
    return 0;
}
