! The Fortran module of a library.
//: module
! Programs of the library $name. Written by tcgen $version.
! SPDX-License-Identifier: Apache-2.0
!
! An array that lies in memory as a[x][y][z] is a(z,y,x) here. status is 0, or another tcgen_status, which message explains.
module $name
  use, intrinsic :: iso_c_binding
  implicit none
  private
  integer(c_int32_t), parameter :: build = ${build}_c_int32_t
  integer, parameter, public :: tcgen_ok = 0, tcgen_null = 1, tcgen_extent = 2, tcgen_workspace = 3, tcgen_alignment = 4
  integer, parameter, public :: tcgen_overlap = 5, tcgen_symmetry = 6, tcgen_part = 7, tcgen_source_failed = 8
  integer, parameter, public :: tcgen_threads = 9, tcgen_limit = 10, tcgen_plan = 11, tcgen_stopped = 12
  integer, parameter, public :: tcgen_processor = 13, tcgen_module = 14

  ! Options of a call; see the C header.
  type, bind(c), public :: tcgen_options
    integer(c_int) :: threads = 0, check = 0, part = 0, blas_serial = 0
    integer(c_int64_t) :: first = 0, last = 0
    type(c_ptr) :: blas = c_null_ptr, stop = c_null_ptr, plan = c_null_ptr
  end type

  ! A source of tiles: the address of a function of tcgen_fill, and what it is given.
  type, bind(c), public :: tcgen_source
    type(c_funptr) :: fill = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
  end type

  abstract interface
    ! Fill a tile of count elements on each axis from first on (from 0), slowest axis first; 0, or a number that ends the call.
    function tcgen_fill(context, first, count, tile) bind(c) result(status)
      import :: c_ptr, c_int64_t, c_int
      type(c_ptr), value :: context, tile
      integer(c_int64_t), intent(in) :: first(*), count(*)
      integer(c_int) :: status
    end function
  end interface
  public :: tcgen_fill
  $types

  interface
    function library_build() bind(c, name='${prefix}build')
      import :: c_int32_t
      integer(c_int32_t) :: library_build
    end function
    function library_message() bind(c, name='${prefix}message')
      import :: c_ptr
      type(c_ptr) :: library_message
    end function
    $interfaces
  end interface
contains

  ! Copy the message of a status; a module of another build than the library calls nothing.
  subroutine report(status, message)
    integer(c_int), intent(in) :: status
    character(len=*), intent(out), optional :: message
    character(kind=c_char), pointer :: text(:)
    integer :: i
    if (.not. present(message)) return
    message = ''
    if (status == tcgen_module) then
      message = '$name: the module and the library are of different builds: compile the module again'
    else if (status /= tcgen_ok) then
      call c_f_pointer(library_message(), text, [512])
      do i = 1, min(len(message), 512)
        if (text(i) == c_null_char) exit
        message(i:i) = text(i)
      end do
    end if
  end subroutine
  $procedures
end module
//: types

  ! $name, $dtype:
  !
  $equations
  public :: $public
  type, bind(c), public :: ${name}_extents
    integer(c_int64_t) :: $extents
  end type
  type, bind(c) :: ${name}_inputs
    $inputs
  end type
  type, bind(c) :: ${name}_outputs
    $outputs
  end type
//: sizes
function ${name}_workspace_bytes(n, threads) bind(c, name='${symbol}_workspace_bytes')
  import :: c_int64_t, c_int, ${name}_extents
  type(${name}_extents), intent(in) :: n
  integer(c_int), value :: threads
  integer(c_int64_t) :: ${name}_workspace_bytes
end function
function ${name}_parts(n) bind(c, name='${symbol}_parts')
  import :: c_int64_t, ${name}_extents
  type(${name}_extents), intent(in) :: n
  integer(c_int64_t) :: ${name}_parts
end function
function ${name}_plan_bytes() bind(c, name='${symbol}_plan_bytes')
  import :: c_size_t
  integer(c_size_t) :: ${name}_plan_bytes
end function
function ${name}_plan(n, threads, plan, bytes) bind(c, name='${symbol}_plan')
  import :: c_int, c_ptr, c_size_t, ${name}_extents
  type(${name}_extents), intent(in) :: n
  integer(c_int), value :: threads
  type(c_ptr), value :: plan
  integer(c_size_t), value :: bytes
  integer(c_int) :: ${name}_plan
end function
//: run_c
function ${name}_c(n, in, out, workspace, bytes, options) bind(c, name='$symbol')
  import :: c_int, c_ptr, c_size_t, ${name}_extents, ${name}_inputs, ${name}_outputs, tcgen_options
  type(${name}_extents), intent(in) :: n
  type(${name}_inputs), intent(in) :: in
  type(${name}_outputs), intent(in) :: out
  type(c_ptr), value :: workspace
  integer(c_size_t), value :: bytes
  type(tcgen_options), intent(in) :: options
  integer(c_int) :: ${name}_c
end function
//: bound_c
function ${name}_state_bytes(n) bind(c, name='${symbol}_state_bytes')
  import :: c_int64_t, ${name}_extents
  type(${name}_extents), intent(in) :: n
  integer(c_int64_t) :: ${name}_state_bytes
end function
function ${name}_bind_c(n, in, state, state_bytes, workspace, bytes, options) bind(c, name='${symbol}_bind')
  import :: c_int, c_ptr, c_size_t, ${name}_extents, ${name}_inputs, tcgen_options
  type(${name}_extents), intent(in) :: n
  type(${name}_inputs), intent(in) :: in
  type(c_ptr), value :: state, workspace
  integer(c_size_t), value :: state_bytes, bytes
  type(tcgen_options), intent(in) :: options
  integer(c_int) :: ${name}_bind_c
end function
function ${name}_call_c(n, in, out, state, state_bytes, workspace, bytes, options) bind(c, name='${symbol}_call')
  import :: c_int, c_ptr, c_size_t, ${name}_extents, ${name}_inputs, ${name}_outputs, tcgen_options
  type(${name}_extents), intent(in) :: n
  type(${name}_inputs), intent(in) :: in
  type(${name}_outputs), intent(in) :: out
  type(c_ptr), value :: state, workspace
  integer(c_size_t), value :: state_bytes, bytes
  type(tcgen_options), intent(in) :: options
  integer(c_int) :: ${name}_call_c
end function
//: procedure

  subroutine $name$suffix($arguments)
    type(${name}_extents), intent(in) :: n
    $declared
    integer(c_int8_t), intent(inout), target, contiguous :: workspace(:)
    integer(c_int), intent(out) :: status
    type(tcgen_options), intent(in), optional :: options
    character(len=*), intent(out), optional :: message
    type(tcgen_options) :: chosen
    type(${name}_inputs) :: in
    $out
    if (present(options)) chosen = options
    $passed
    status = tcgen_module
    if (library_build() == build) then
      status = $name${suffix}_c($given, c_loc(workspace), size(workspace, kind=c_size_t), chosen)
    end if
    call report(status, message)
  end subroutine
