! CCSD of the molecule in an FCIDUMP file of a closed shell in canonical orbitals; writes what energy_t.c reads.
!     ccsd FILE AMPLITUDES
! The library stores arrays so that t2(i,j,a,b) is t2[i,j,a,b] of the equations (tcgen library --fortran-order).
module molecule
  use, intrinsic :: iso_fortran_env, only: real64, int64
  implicit none
  integer(int64) :: o, v
  real(real64) :: nuclear
  real(real64), allocatable :: h(:,:), eri(:,:,:,:), fock(:,:)
contains
  ! Read the file; fill the eight equal elements of each integral, and the Fock matrix.
  subroutine read_fcidump(path)
    character(len=*), intent(in) :: path
    integer :: unit, norb, nelec, ms2, isym, orbsym(1000), status, p, q, r, s
    real(real64) :: x
    namelist /fci/ norb, nelec, ms2, orbsym, isym
    open (newunit=unit, file=path, status='old', action='read')
    read (unit, fci)
    o = nelec/2
    v = norb - o
    allocate (h(norb,norb), eri(norb,norb,norb,norb), fock(norb,norb), source=0.0_real64)
    do
      read (unit, *, iostat=status) x, p, q, r, s
      if (status /= 0) exit
      if (r > 0) then
        eri(p,q,r,s) = x; eri(q,p,r,s) = x; eri(p,q,s,r) = x; eri(q,p,s,r) = x
        eri(r,s,p,q) = x; eri(s,r,p,q) = x; eri(r,s,q,p) = x; eri(s,r,q,p) = x
      else if (q > 0) then
        h(p,q) = x; h(q,p) = x
      else if (p == 0) then
        nuclear = x
      end if
    end do
    close (unit)
    fock = h
    do p = 1, int(o)
      fock = fock + 2*eri(:,:,p,p) - eri(:,p,p,:)
    end do
  end subroutine
end module

! DIIS of amplitudes (P. Pulay, Chem. Phys. Lett. 73, 393 (1980)).
module diis
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: most = 8
  real(real64), allocatable :: vectors(:,:), errors(:,:)
  integer :: held = 0
contains
  subroutine extrapolate(x, error)
    real(real64), intent(inout) :: x(:)
    real(real64), intent(in) :: error(:)
    real(real64) :: b(most+1,most+1), c(most+1)
    integer :: place, n, m
    if (.not. allocated(vectors)) allocate (vectors(size(x),most), errors(size(x),most))
    place = mod(held, most) + 1
    held = held + 1
    vectors(:,place) = x
    errors(:,place) = error
    n = min(held, most)
    if (n < 2) return
    b = -1; c = 0
    do m = 1, n
      b(m,1:n) = matmul(errors(:,m), errors(:,1:n))
    end do
    b(n+1,n+1) = 0
    c(n+1) = -1
    call solve(b(1:n+1,1:n+1), c(1:n+1))
    x = matmul(vectors(:,1:n), c(1:n))
  end subroutine

  ! Solve a x = b by elimination with pivots.
  subroutine solve(a, b)
    real(real64), intent(inout) :: a(:,:), b(:)
    real(real64) :: row(size(b)), value
    integer :: n, k, pivot
    do n = 1, size(b)
      pivot = n - 1 + maxloc(abs(a(n:,n)), 1)
      row = a(n,:); a(n,:) = a(pivot,:); a(pivot,:) = row
      value = b(n); b(n) = b(pivot); b(pivot) = value
      do k = 1, size(b)
        if (k == n) cycle
        value = a(k,n)/a(n,n)
        a(k,:) = a(k,:) - value*a(n,:)
        b(k) = b(k) - value*b(n)
      end do
    end do
    do n = 1, size(b)
      b(n) = b(n)/a(n,n)
    end do
  end subroutine
end module

program ccsd
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64, int64, error_unit
  use cc
  use molecule
  use diis
  implicit none
  type(ccsd_closed_shell_extents) :: n
  real(real64), allocatable :: e_o(:), e_v(:), t1(:,:), t2(:,:,:,:), r1(:,:), r2(:,:,:,:), new1(:,:), new2(:,:,:,:), vvvv(:,:)
  real(real64), allocatable :: x(:), step(:)
  real(real64) :: e, e_hf, change
  integer(c_int8_t), allocatable :: state(:), workspace(:)
  integer(c_int) :: status
  integer :: iteration, unit, i, j, a, b, c, d, ab, cd
  character(len=400) :: path, dump, message
  call get_command_argument(1, path)
  call get_command_argument(2, dump)
  call read_fcidump(trim(path))
  n = ccsd_closed_shell_extents(o=o, v=v)

  allocate (e_o(o), e_v(v), t1(o,v), t2(o,o,v,v), r1(o,v), r2(o,o,v,v), new1(o,v), new2(o,o,v,v))
  allocate (vvvv(v*(v + 1)/2, v*(v + 1)/2), x(o*v + (o*v)**2), step(o*v + (o*v)**2))
  e_hf = nuclear
  do i = 1, int(o)
    e_o(i) = fock(i,i)
    e_hf = e_hf + h(i,i) + fock(i,i)
  end do
  do a = 1, int(v)
    e_v(a) = fock(o+a,o+a)
  end do
  ! (ab|cd) in triangles: pair a >= b at a(a-1)/2 + b.
  do a = 1, int(v)
    do b = 1, a
      do c = 1, int(v)
        do d = 1, c
          ab = a*(a - 1)/2 + b; cd = c*(c - 1)/2 + d
          vvvv(ab,cd) = eri(o+a,o+b,o+c,o+d)
        end do
      end do
    end do
  end do
  do b = 1, int(v)
    do a = 1, int(v)
      do j = 1, int(o)
        do i = 1, int(o)
          t2(i,j,a,b) = eri(i,o+a,j,o+b)/(e_o(i) + e_o(j) - e_v(a) - e_v(b))
        end do
      end do
    end do
  end do
  do a = 1, int(v)
    t1(:,a) = fock(1:o,o+a)/(e_o - e_v(a))
  end do

  allocate (state(ccsd_closed_shell_state_bytes(n)), workspace(ccsd_closed_shell_workspace_bytes(n, 0_c_int)))
  ! Sections are copied to contiguous arrays, which last as long as the call.
  call solve_ccsd(fock(:o,:o), fock(:o,o+1:), fock(o+1:,o+1:), eri(:o,:o,:o,:o), eri(:o,:o,o+1:,o+1:), &
    eri(:o,o+1:,:o,:o), eri(:o,o+1:,:o,o+1:), eri(:o,o+1:,o+1:,o+1:))
contains
  ! A bound program reads its constants at each call, so that they must stay where they are.
  subroutine solve_ccsd(f_oo, f_ov, f_vv, v_oooo, v_oovv, v_ovoo, v_ovov, v_ovvv)
    real(real64), intent(in) :: f_oo(o,o), f_ov(o,v), f_vv(v,v), v_oooo(o,o,o,o), v_oovv(o,o,v,v), v_ovoo(o,v,o,o), &
      v_ovov(o,v,o,v), v_ovvv(o,v,v,v)
    call ccsd_closed_shell_bind(n, f_oo=f_oo, f_ov=f_ov, f_vv=f_vv, v_oooo=v_oooo, v_oovv=v_oovv, v_ovoo=v_ovoo, &
      v_ovov=v_ovov, v_ovvv=v_ovvv, v_vvvv=vvvv, e_o=e_o, e_v=e_v, t1=t1, t2=t2, state=state, workspace=workspace, &
      status=status, message=message)
    call check()
    do iteration = 1, 60
      call ccsd_closed_shell_call(n, f_oo=f_oo, f_ov=f_ov, f_vv=f_vv, v_oooo=v_oooo, v_oovv=v_oovv, v_ovoo=v_ovoo, &
        v_ovov=v_ovov, v_ovvv=v_ovvv, v_vvvv=vvvv, e_o=e_o, e_v=e_v, t1=t1, t2=t2, e=e, r1=r1, r2=r2, t1_new=new1, &
        t2_new=new2, state=state, workspace=workspace, status=status, message=message)
      call check()
      x = [new1, new2]
      step = x - [t1, t2]
      change = norm2(step)
      print '(i4,f18.12,es12.1)', iteration, e, change
      if (change < 1e-10_real64) exit
      call extrapolate(x, step)
      t1 = reshape(x(:o*v), [o, v])
      t2 = reshape(x(o*v+1:), [o, o, v, v])
    end do
    if (change >= 1e-10_real64) error stop 'CCSD does not converge'
    print '(a,f0.10,a,f0.10,a)', 'E(HF) = ', e_hf, ', E(CCSD) = ', e, ' Hartree'
    open (newunit=unit, file=trim(dump), access='stream', form='unformatted', status='replace')
    write (unit) o, v, f_ov, t1, e_o, e_v, t2, v_ovoo, v_ovov, v_ovvv
    close (unit)
  end subroutine

  subroutine check()
    if (status == tcgen_ok) return
    write (error_unit, '(2a)') 'ccsd: ', trim(message)
    error stop 1
  end subroutine
end program
