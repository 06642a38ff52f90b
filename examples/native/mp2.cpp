// MP2 of the molecule in an FCIDUMP file. The program asks for tiles of (ia|jb), which a function looks up in the
// packed list of integrals: there is no array of all (ia|jb).
//     mp2 FILE
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>
#include <mp.hpp>

namespace {

// (pq|rs) of real orbitals in triangles of triangles, and the Fock matrix of the occupied ones.
struct molecule {
    std::int64_t orbitals = 0, occupied = 0;
    std::vector<double> pairs, core;

    static std::int64_t triangle(std::int64_t p, std::int64_t q)
    {
        return std::max(p, q)*(std::max(p, q) + 1)/2 + std::min(p, q);
    }
    double repulsion(std::int64_t p, std::int64_t q, std::int64_t r, std::int64_t s) const
    {
        return pairs[triangle(triangle(p, q), triangle(r, s))];
    }
    double energy(std::int64_t p) const
    {
        double sum = core[triangle(p, p)];
        for (std::int64_t i = 0; i < occupied; ++i) sum += 2*repulsion(p, p, i, i) - repulsion(p, i, p, i);
        return sum;
    }
};

std::int64_t number_after(const std::string &text, const std::string &name)
{
    const auto at = text.find(name + "=");
    if (at == std::string::npos) throw std::runtime_error(name + " is missing in the FCIDUMP file");
    return std::stoll(text.substr(at + name.size() + 1));
}

molecule read(const char *path)
{
    std::ifstream file(path);
    if (!file) throw std::runtime_error(std::string(path) + " cannot be read");
    std::string head, line;
    while (std::getline(file, line) && line.find("&END") == std::string::npos) head += line;
    molecule found;
    found.orbitals = number_after(head, "NORB");
    found.occupied = number_after(head, "NELEC")/2;
    const auto pairs = found.orbitals*(found.orbitals + 1)/2;
    found.core.resize(pairs);
    found.pairs.resize(pairs*(pairs + 1)/2);
    double value;
    std::int64_t p, q, r, s;
    while (file >> value >> p >> q >> r >> s) {
        if (r) found.pairs[molecule::triangle(molecule::triangle(p - 1, q - 1), molecule::triangle(r - 1, s - 1))] = value;
        else if (q) found.core[molecule::triangle(p - 1, q - 1)] = value;
    }
    return found;
}

}

int main(int count, char **words)
{
    try {
        const molecule water = read(count > 1 ? words[1] : "water.fcidump");
        const std::int64_t o = water.occupied, v = water.orbitals - o;
        std::vector<double> e_o(o), e_v(v), e(1);
        for (std::int64_t i = 0; i < o; ++i) e_o[i] = water.energy(i);
        for (std::int64_t a = 0; a < v; ++a) e_v[a] = water.energy(o + a);

        const tcgen::source tiles{[&](const std::int64_t *first, const std::int64_t *size, void *tile) {
            auto *to = static_cast<double *>(tile);
            for (auto i = first[0]; i < first[0] + size[0]; ++i)
                for (auto a = first[1]; a < first[1] + size[1]; ++a)
                    for (auto j = first[2]; j < first[2] + size[2]; ++j)
                        for (auto b = first[3]; b < first[3] + size[3]; ++b) *to++ = water.repulsion(i, o + a, j, o + b);
        }};
        mp::mp2_closed_shell mp2({.o = o, .v = v});
        mp2({.g = tiles, .e_o = e_o, .e_v = e_v}, {.e = e});
        std::printf("E(MP2) = %.10f Hartree, %lld bytes of workspace\n", e[0], static_cast<long long>(mp2.workspace_bytes()));
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "mp2: %s\n", error.what());
        return 1;
    }
}
