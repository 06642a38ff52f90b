#!/usr/bin/env bash
# Write libraries, build them and the programs that call them, and run these for water in 6-31G.
#     bash examples/native/run.sh FOLDER [C compiler] [C++ compiler]
# Needs tcgen, CMake, gcc or clang, gfortran and MPI; FOLDER takes libraries and builds. Meson builds two of the
# programs again, if it is installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
export CC=${2:-gcc} CXX=${3:-g++}

tcgen -q library mp2_closed_shell --sliced g -e o=5 -e v=8 -o "$folder/mp"
tcgen -q library ccsd_closed_shell --fortran-order -e o=5 -e v=8 -o "$folder/cc"
# Within a limit, (T) is computed for some virtual orbitals at a time, so that it has parts.
tcgen -q library t_closed_shell --fortran-order -e o=20 -e v=60 --memory-limit 100MB -o "$folder/triples"
for library in cc triples; do
    cmake -S "$folder/$library" -B "$folder/build-$library" -Dcc_FORTRAN=ON -DCMAKE_INSTALL_PREFIX="$folder/installed"
    cmake --build "$folder/build-$library" -j2
    cmake --install "$folder/build-$library"
done
cmake -S "$here" -B "$folder/build" -DLIBRARIES="$folder" -DCMAKE_PREFIX_PATH="$folder/installed"
cmake --build "$folder/build" -j2

builds=(build)
if command -v meson >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$folder/installed" -name cc.pc)") meson setup "$folder/build-meson" "$here"
    meson compile -C "$folder/build-meson"
    builds+=(build-meson)
fi

cd "$folder"
water=$here/../data/water.fcidump
for build in "${builds[@]}"; do
    build/mp2 "$water" | tee printed
    "$build/ccsd" "$water" water.amplitudes | tee -a printed
    mpirun --oversubscribe -n 2 "$build/energy_t" water.amplitudes | tee -a printed
    # PySCF: examples/data/make_fcidump.py. The last digits may be rounded differently.
    grep -q 'E(MP2) = -0.1288509' printed
    grep -q 'E(CCSD) = -.13537949' printed
    grep -q 'E(T) = -0.00099585' printed
done
echo "the energies are PySCF's"
