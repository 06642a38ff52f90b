/* C sources of a library. */
//: names
/* Names of what is compiled for each kind of processor. */
#define TC_JOIN_NAMES(name, arch) name##arch
#define TC_JOIN(name, arch) TC_JOIN_NAMES(name, arch)
#define TC_LINKED(name) TC_JOIN($prefix##name, TC_ARCH)
//: kernels
#include "names.h"
$renames
$source
#include "runtime/functions.h"
$externs
static tcr_kernel_function *const tcr_kernels[] = {$all};
extern const tcr_functions $table;
const tcr_functions $table = {
    tcr_kernels, {$constant, $volatile}, $parted,
    {$products},
};
//: calls
/* Calls of the programs of $library. Written by tcgen $version.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "$library.h"
/* Places in the table of functions of kernels, behind those of the BLAS. */
#define TCR_SERIAL $serial
#define TCR_STOP $stop
#include "runtime/abi.h"
$includes

$chooser

$last

const char *${prefix}message(void) { return tcr_message; }
int32_t ${prefix}build(void) { return $build; }
//: entry
$head
{
    $call
}
