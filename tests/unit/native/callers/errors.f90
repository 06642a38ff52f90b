! Provokes each status of the program guarded in Fortran; prints "STATUS message" for each, with an argument for one call.
module sources
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int) :: answer = 0
contains
  function fill(context, first, count, tile) bind(c) result(status)
    type(c_ptr), value :: context, tile
    integer(c_int64_t), intent(in) :: first(*), count(*)
    integer(c_int) :: status
    real(c_double), pointer :: values(:)
    if (.not. c_associated(context) .and. first(1) >= 0) then
      call c_f_pointer(tile, values, [count(1)*count(2)])
      values = 1
    end if
    status = answer
  end function
end module

program errors
  use, intrinsic :: iso_c_binding
  use lib
  use sources
  implicit none
  integer, parameter :: o = 3, v = 4
  real(c_double), target :: t(v,o), g(v,v), h(v,v), y, z(v,o), large(300,300), other(300,300)
  type(guarded_extents) :: n = guarded_extents(o, v), wide = guarded_extents(300, 300)
  type(tcgen_options) :: options
  type(tcgen_source) :: ones
  integer(c_int8_t), allocatable, target :: work(:), state(:), plan(:), most(:)
  integer(c_int), target :: stop = 1
  integer(c_int) :: status
  character(len=300) :: text
  t = 1; g = 1; h = 1; large = 1; other = 1
  options%threads = 1
  ones%fill = c_funloc(fill)
  allocate (work(guarded_workspace_bytes(n, 1_c_int)), most(guarded_workspace_bytes(wide, 1_c_int)))
  allocate (state(guarded_state_bytes(n)), plan(guarded_plan_bytes()))
  call run(n, work)
  if (command_argument_count() > 0) stop
  call guarded(n, t, g, h, tcgen_source(), z, y, work, status, options, text)
  call show()
  call run(guarded_extents(-1, v), work)
  call run(n, work(1:8))
  call run(n, most(2:))
  call guarded(n, t, g, h, ones, t, y, work, status, options, text)
  call show()
  options%check = 1; g(1,2) = 7
  call run(n, work)
  g(1,2) = 1; options%part = 1; options%last = 1000
  call run(n, work)
  options%part = 0; answer = 5
  call run(n, work)
  answer = 0; options%threads = -1
  call run(n, work)
  options%threads = 1
  call guarded(wide, large, large, large, ones, other, y, most, status, options, text)
  call show()
  status = guarded_plan(n, 2_c_int, c_loc(plan), size(plan, kind=c_size_t))
  options%plan = c_loc(plan)
  call run(n, work)
  options%plan = c_null_ptr; options%stop = c_loc(stop)
  call run(n, work)
  options%stop = c_null_ptr
  call guarded_bind(n, t=t, g=g, h=h, b=ones, state=state, workspace=work, status=status, options=options, message=text)
  call show()
  call guarded_call(n, t=t, g=g, h=h, b=ones, y=y, z=z, state=state, workspace=work, status=status, options=options, &
    message=text)
  call show()
contains
  subroutine run(extents, memory)
    type(guarded_extents), intent(in) :: extents
    integer(c_int8_t), intent(inout), target, contiguous :: memory(:)
    call guarded(extents, t=t, g=g, h=h, b=ones, y=y, z=z, workspace=memory, status=status, options=options, message=text)
    call show()
  end subroutine
  subroutine show()
    print '(i0,1x,a)', status, trim(text)
  end subroutine
end program
