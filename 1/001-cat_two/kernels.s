	.file	"<string>"
	.section	.rodata.cst16,"aM",@progbits,16
	.p2align	4, 0x0
.LCPI0_0:
	.zero	16,1
.LCPI0_3:
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_1:
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_2:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
	.section	.rodata,"a",@progbits
.LCPI0_4:
	.byte	1
	.text
	.p2align	4
	.type	gt_89a39850d9ac4740.0.range,@function
gt_89a39850d9ac4740.0.range:
	movq	(%rdx), %rax
	leaq	15(%rax), %rcx
	testq	%rax, %rax
	cmovnsq	%rax, %rcx
	movq	%rcx, %rdx
	shrq	$4, %rdx
	sarq	$63, %rcx
	andnq	%rdx, %rcx, %rcx
	shlq	$4, %rcx
	testq	%rcx, %rcx
	jle	.LBB0_3
	vpbroadcastb	.LCPI0_4(%rip), %xmm1
	xorl	%edx, %edx
	vxorps	%xmm0, %xmm0, %xmm0
	.p2align	4
.LBB0_2:
	vcmpltps	(%rdi,%rdx,4), %ymm0, %ymm2
	vextractf128	$1, %ymm2, %xmm3
	vpackssdw	%xmm3, %xmm2, %xmm2
	vcmpltps	32(%rdi,%rdx,4), %ymm0, %ymm3
	vextractf128	$1, %ymm3, %xmm4
	vpackssdw	%xmm4, %xmm3, %xmm3
	vpacksswb	%xmm3, %xmm2, %xmm2
	vpand	%xmm1, %xmm2, %xmm2
	vmovdqu	%xmm2, (%rsi,%rdx)
	addq	$16, %rdx
	cmpq	%rcx, %rdx
	jl	.LBB0_2
.LBB0_3:
	cmpq	%rax, %rcx
	jge	.LBB0_22
	vmovdqa	.LCPI0_1(%rip), %ymm0
	vmovdqa	.LCPI0_2(%rip), %ymm1
	vpbroadcastb	.LCPI0_4(%rip), %xmm3
	vpxor	%xmm2, %xmm2, %xmm2
	jmp	.LBB0_5
	.p2align	4
.LBB0_21:
	addq	$8, %rcx
	cmpq	%rax, %rcx
	jge	.LBB0_22
.LBB0_5:
	movq	%rax, %rdx
	subq	%rcx, %rdx
	vmovq	%rdx, %xmm4
	leaq	(%rsi,%rcx), %rdx
	vpbroadcastq	%xmm4, %ymm4
	vpcmpgtq	%ymm0, %ymm4, %ymm5
	vpcmpgtq	%ymm1, %ymm4, %ymm4
	vpackssdw	%ymm5, %ymm4, %ymm5
	vextracti128	$1, %ymm5, %xmm4
	vpackssdw	%xmm4, %xmm5, %xmm4
	vpermq	$216, %ymm5, %ymm5
	vpshufd	$216, %xmm4, %xmm4
	vpmovzxwd	%xmm4, %ymm4
	vpslld	$31, %ymm4, %ymm4
	vmovmskps	%ymm5, %r8d
	vmaskmovps	(%rdi,%rcx,4), %ymm4, %ymm4
	vcmpltps	%ymm4, %ymm2, %ymm4
	vextractf128	$1, %ymm4, %xmm6
	vpackssdw	%xmm6, %xmm4, %xmm4
	vpacksswb	%xmm4, %xmm4, %xmm4
	vpand	%xmm3, %xmm4, %xmm4
	testb	$1, %r8b
	jne	.LBB0_6
	testb	$2, %r8b
	jne	.LBB0_8
.LBB0_9:
	testb	$4, %r8b
	jne	.LBB0_10
.LBB0_11:
	testb	$8, %r8b
	jne	.LBB0_12
.LBB0_13:
	testb	$16, %r8b
	jne	.LBB0_14
.LBB0_15:
	testb	$32, %r8b
	jne	.LBB0_16
.LBB0_17:
	testb	$64, %r8b
	jne	.LBB0_18
.LBB0_19:
	testb	$-128, %r8b
	je	.LBB0_21
	jmp	.LBB0_20
	.p2align	4
.LBB0_6:
	vpextrb	$0, %xmm4, (%rdx)
	testb	$2, %r8b
	je	.LBB0_9
.LBB0_8:
	vpextrb	$1, %xmm4, 1(%rdx)
	testb	$4, %r8b
	je	.LBB0_11
.LBB0_10:
	vpextrb	$2, %xmm4, 2(%rdx)
	testb	$8, %r8b
	je	.LBB0_13
.LBB0_12:
	vpextrb	$3, %xmm4, 3(%rdx)
	testb	$16, %r8b
	je	.LBB0_15
.LBB0_14:
	vpextrb	$4, %xmm4, 4(%rdx)
	testb	$32, %r8b
	je	.LBB0_17
.LBB0_16:
	vpextrb	$5, %xmm4, 5(%rdx)
	testb	$64, %r8b
	je	.LBB0_19
.LBB0_18:
	vpextrb	$6, %xmm4, 6(%rdx)
	testb	$-128, %r8b
	je	.LBB0_21
.LBB0_20:
	vpextrb	$7, %xmm4, 7(%rdx)
	jmp	.LBB0_21
.LBB0_22:
	vzeroupper
	retq
.Lfunc_end0:
	.size	gt_89a39850d9ac4740.0.range, .Lfunc_end0-gt_89a39850d9ac4740.0.range

	.globl	gt_89a39850d9ac4740
	.p2align	4
	.type	gt_89a39850d9ac4740,@function
gt_89a39850d9ac4740:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	leaq	4(%rsp), %rcx
	movl	$0, 4(%rsp)
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	gt_89a39850d9ac4740.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	gt_89a39850d9ac4740, .Lfunc_end1-gt_89a39850d9ac4740

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	compact_093767ae38dd41e5.0.range,@function
compact_093767ae38dd41e5.0.range:
	movq	(%rcx), %rcx
	xorl	%eax, %eax
	testq	%rcx, %rcx
	jle	.LBB0_3
	xorl	%r8d, %r8d
	.p2align	4
.LBB0_2:
	cmpb	$1, (%rdi,%r8)
	movq	%r8, (%rsi,%rax,8)
	sbbq	$-1, %rax
	incq	%r8
	cmpq	%rcx, %r8
	jl	.LBB0_2
.LBB0_3:
	movq	%rax, (%rdx)
	retq
.Lfunc_end0:
	.size	compact_093767ae38dd41e5.0.range, .Lfunc_end0-compact_093767ae38dd41e5.0.range

	.globl	compact_093767ae38dd41e5
	.p2align	4
	.type	compact_093767ae38dd41e5,@function
compact_093767ae38dd41e5:
	subq	$24, %rsp
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	movq	24(%rdi), %rcx
	leaq	20(%rsp), %r8
	movl	$0, 20(%rsp)
	movq	$0, (%rsp)
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	compact_093767ae38dd41e5.0.range
	movl	20(%rsp), %eax
	addq	$24, %rsp
	retq
.Lfunc_end1:
	.size	compact_093767ae38dd41e5, .Lfunc_end1-compact_093767ae38dd41e5

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_0:
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_1:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
	.text
	.p2align	4
	.type	clone_07de6c46ffda2c1b.0.range,@function
clone_07de6c46ffda2c1b.0.range:
	movq	(%rdx), %rax
	leaq	15(%rax), %rcx
	testq	%rax, %rax
	cmovnsq	%rax, %rcx
	movq	%rcx, %rdx
	shrq	$4, %rdx
	sarq	$63, %rcx
	andnq	%rdx, %rcx, %rcx
	shlq	$4, %rcx
	testq	%rcx, %rcx
	jle	.LBB0_3
	xorl	%edx, %edx
	.p2align	4
.LBB0_2:
	vmovdqu	(%rdi,%rdx,4), %ymm0
	vmovdqu	32(%rdi,%rdx,4), %ymm1
	vmovdqu	%ymm0, (%rsi,%rdx,4)
	vmovdqu	%ymm1, 32(%rsi,%rdx,4)
	addq	$16, %rdx
	cmpq	%rcx, %rdx
	jl	.LBB0_2
.LBB0_3:
	cmpq	%rax, %rcx
	jge	.LBB0_6
	vmovdqa	.LCPI0_0(%rip), %ymm0
	vmovdqa	.LCPI0_1(%rip), %ymm1
	.p2align	4
.LBB0_5:
	movq	%rax, %rdx
	subq	%rcx, %rdx
	vmovq	%rdx, %xmm2
	vpbroadcastq	%xmm2, %ymm2
	vpcmpgtq	%ymm0, %ymm2, %ymm3
	vpcmpgtq	%ymm1, %ymm2, %ymm2
	vpackssdw	%ymm3, %ymm2, %ymm2
	vextracti128	$1, %ymm2, %xmm3
	vpackssdw	%xmm3, %xmm2, %xmm2
	vpshufd	$216, %xmm2, %xmm2
	vpmovzxwd	%xmm2, %ymm2
	vpslld	$31, %ymm2, %ymm2
	vmaskmovps	(%rdi,%rcx,4), %ymm2, %ymm3
	vmaskmovps	%ymm3, %ymm2, (%rsi,%rcx,4)
	addq	$8, %rcx
	cmpq	%rax, %rcx
	jl	.LBB0_5
.LBB0_6:
	vzeroupper
	retq
.Lfunc_end0:
	.size	clone_07de6c46ffda2c1b.0.range, .Lfunc_end0-clone_07de6c46ffda2c1b.0.range

	.globl	clone_07de6c46ffda2c1b
	.p2align	4
	.type	clone_07de6c46ffda2c1b,@function
clone_07de6c46ffda2c1b:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	leaq	4(%rsp), %rcx
	movl	$0, 4(%rsp)
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	clone_07de6c46ffda2c1b.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	clone_07de6c46ffda2c1b, .Lfunc_end1-clone_07de6c46ffda2c1b

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	number_e300714c709fb3d0.0.range,@function
number_e300714c709fb3d0.0.range:
	movq	(%rdi), %rax
	testq	%rax, %rax
	js	.LBB0_2
	movq	%rax, 232(%rsi)
.LBB0_4:
	retq
.LBB0_2:
	movl	$1, %esi
	xorl	%eax, %eax
	lock		cmpxchgl	%esi, (%rcx)
	jne	.LBB0_4
	movq	$1, (%rdx)
	movq	$1, 8(%rdx)
	retq
.Lfunc_end0:
	.size	number_e300714c709fb3d0.0.range, .Lfunc_end0-number_e300714c709fb3d0.0.range

	.globl	number_e300714c709fb3d0
	.p2align	4
	.type	number_e300714c709fb3d0,@function
number_e300714c709fb3d0:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	leaq	4(%rsp), %rcx
	movl	$0, 4(%rsp)
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	number_e300714c709fb3d0.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	number_e300714c709fb3d0, .Lfunc_end1-number_e300714c709fb3d0

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_0:
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_1:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
.LCPI0_2:
	.quad	12
	.quad	13
	.quad	14
	.quad	15
.LCPI0_3:
	.quad	8
	.quad	9
	.quad	10
	.quad	11
.LCPI0_5:
	.quad	0
	.quad	-1
	.quad	-2
	.quad	-3
.LCPI0_6:
	.quad	-4
	.quad	-5
	.quad	-6
	.quad	-7
.LCPI0_7:
	.quad	-8
	.quad	-9
	.quad	-10
	.quad	-11
.LCPI0_8:
	.quad	-12
	.quad	-13
	.quad	-14
	.quad	-15
	.section	.rodata.cst8,"aM",@progbits,8
	.p2align	3, 0x0
.LCPI0_4:
	.quad	1
	.text
	.p2align	4
	.type	_unsafe_index_9a23cda8cc43b70d.0.range,@function
_unsafe_index_9a23cda8cc43b70d.0.range:
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$128, %rsp
	movq	(%rcx), %r8
	vpbroadcastq	16(%rcx), %ymm3
	vpbroadcastq	8(%rcx), %ymm13
	vmovq	%rdi, %xmm1
	vmovq	%rsi, %xmm2
	vmovdqa	%xmm1, -112(%rsp)
	vmovq	%rdx, %xmm1
	vmovdqa	%xmm2, -80(%rsp)
	vmovdqa	%xmm1, -96(%rsp)
	leaq	15(%r8), %rax
	testq	%r8, %r8
	vmovq	%r8, %xmm0
	cmovnsq	%r8, %rax
	vpbroadcastq	%xmm0, %ymm12
	movq	%rax, %r9
	shrq	$4, %r9
	sarq	$63, %rax
	andnq	%r9, %rax, %r9
	vmovdqu	%ymm3, -32(%rsp)
	vmovdqu	%ymm12, (%rsp)
	shlq	$4, %r9
	testq	%r9, %r9
	jle	.LBB0_3
	vbroadcastsd	.LCPI0_4(%rip), %ymm1
	vpxor	%xmm0, %xmm0, %xmm0
	vpcmpeqq	%ymm0, %ymm12, %ymm0
	xorl	%edi, %edi
	vblendvpd	%ymm0, %ymm1, %ymm12, %ymm0
	vmovupd	%ymm1, 64(%rsp)
	vmovupd	%ymm0, 32(%rsp)
	.p2align	4
.LBB0_2:
	vmovq	%rdi, %xmm0
	vpcmpeqd	%ymm1, %ymm1, %ymm1
	vmovupd	32(%rsp), %ymm11
	vmovdqa	.LCPI0_5(%rip), %ymm5
	addq	$16, %rdi
	vpbroadcastq	%xmm0, %ymm15
	vpcmpeqq	%ymm1, %ymm12, %ymm6
	vpaddq	.LCPI0_1(%rip), %ymm15, %ymm9
	vpaddq	.LCPI0_0(%rip), %ymm15, %ymm8
	vpaddq	.LCPI0_3(%rip), %ymm15, %ymm14
	vpaddq	.LCPI0_2(%rip), %ymm15, %ymm0
	vblendvpd	%ymm6, 64(%rsp), %ymm11, %ymm7
	vpsubq	%ymm15, %ymm5, %ymm5
	vextracti128	$1, %ymm9, %xmm1
	vextracti128	$1, %ymm8, %xmm3
	vextractf128	$1, %ymm7, %xmm2
	vpextrq	$1, %xmm7, %rbx
	vmovq	%xmm7, %r14
	vpextrq	$1, %xmm7, %r15
	vmovq	%xmm7, %r12
	vpsrlq	$32, %ymm11, %ymm7
	vpextrq	$1, %xmm1, %rax
	vpextrq	$1, %xmm2, %r11
	cqto
	vmovq	%xmm2, %r10
	idivq	%r11
	movq	%rax, %rcx
	vmovq	%xmm1, %rax
	vmovq	%rcx, %xmm1
	cqto
	idivq	%r10
	movq	%rax, %rsi
	vpextrq	$1, %xmm9, %rax
	vmovq	%rsi, %xmm2
	cqto
	vpunpcklqdq	%xmm1, %xmm2, %xmm1
	idivq	%rbx
	movq	%rax, %rcx
	vmovq	%xmm9, %rax
	vmovq	%rcx, %xmm2
	vpextrq	$1, %xmm3, %rcx
	cqto
	idivq	%r14
	vmovq	%rax, %xmm4
	movq	%rcx, %rax
	cqto
	idivq	%r11
	vpunpcklqdq	%xmm2, %xmm4, %xmm2
	vinserti128	$1, %xmm1, %ymm2, %ymm1
	vblendvpd	%ymm6, %ymm5, %ymm1, %ymm1
	vpsrlq	$32, %ymm1, %ymm10
	vpmuludq	%ymm7, %ymm1, %ymm5
	vpmuludq	%ymm1, %ymm11, %ymm1
	movq	%rax, %rcx
	vmovq	%xmm3, %rax
	vmovq	%rcx, %xmm2
	vpextrq	$1, %xmm8, %rcx
	cqto
	idivq	%r10
	vmovq	%rax, %xmm3
	movq	%rcx, %rax
	cqto
	idivq	%r15
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	movq	%rax, %rcx
	vmovq	%xmm8, %rax
	vmovq	%rcx, %xmm3
	cqto
	idivq	%r12
	vmovq	%rax, %xmm4
	vpunpcklqdq	%xmm3, %xmm4, %xmm3
	vmovdqa	.LCPI0_6(%rip), %ymm4
	vinserti128	$1, %xmm2, %ymm3, %ymm2
	vpmuludq	%ymm11, %ymm10, %ymm3
	vpxor	%xmm10, %xmm10, %xmm10
	vpaddq	%ymm3, %ymm5, %ymm3
	vpsllq	$32, %ymm3, %ymm3
	vpaddq	%ymm3, %ymm1, %ymm1
	vpsubq	%ymm1, %ymm9, %ymm1
	vpsubq	%ymm15, %ymm4, %ymm4
	vpaddq	%ymm1, %ymm12, %ymm9
	vblendvpd	%ymm6, %ymm4, %ymm2, %ymm2
	vpsrlq	$32, %ymm2, %ymm4
	vpmuludq	%ymm7, %ymm2, %ymm3
	vpmuludq	%ymm2, %ymm11, %ymm2
	vpmuludq	%ymm4, %ymm11, %ymm4
	vpaddq	%ymm4, %ymm3, %ymm3
	vpcmpeqq	%ymm10, %ymm1, %ymm4
	vpsllq	$32, %ymm3, %ymm3
	vpaddq	%ymm3, %ymm2, %ymm2
	vpxor	%ymm1, %ymm12, %ymm3
	vpandn	%ymm3, %ymm4, %ymm3
	vpsubq	%ymm2, %ymm8, %ymm2
	vblendvpd	%ymm3, %ymm9, %ymm1, %ymm9
	vextracti128	$1, %ymm14, %xmm3
	vpxor	%ymm2, %ymm12, %ymm5
	vpcmpeqq	%ymm10, %ymm2, %ymm4
	vpaddq	%ymm2, %ymm12, %ymm8
	vpandn	%ymm5, %ymm4, %ymm1
	vblendvpd	%ymm1, %ymm8, %ymm2, %ymm8
	vpextrq	$1, %xmm3, %rax
	cqto
	idivq	%r11
	vmovq	%rax, %xmm1
	vmovq	%xmm3, %rax
	vextracti128	$1, %ymm0, %xmm3
	cqto
	idivq	%r10
	movq	%rax, %rcx
	vpextrq	$1, %xmm14, %rax
	vmovq	%rcx, %xmm2
	vpextrq	$1, %xmm3, %rcx
	cqto
	vpunpcklqdq	%xmm1, %xmm2, %xmm1
	idivq	%rbx
	movq	%rax, %rsi
	vmovq	%xmm14, %rax
	vmovq	%rsi, %xmm2
	cqto
	idivq	%r14
	vmovq	%rax, %xmm4
	movq	%rcx, %rax
	cqto
	idivq	%r11
	vpunpcklqdq	%xmm2, %xmm4, %xmm2
	vinserti128	$1, %xmm1, %ymm2, %ymm1
	movq	%rax, %rcx
	vmovq	%xmm3, %rax
	vmovq	%rcx, %xmm2
	cqto
	idivq	%r10
	vmovq	%rax, %xmm3
	vpextrq	$1, %xmm0, %rax
	cqto
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	idivq	%r15
	vmovq	%rax, %xmm3
	vmovq	%xmm0, %rax
	cqto
	idivq	%r12
	vmovq	%rax, %xmm4
	vpunpcklqdq	%xmm3, %xmm4, %xmm3
	vmovdqa	.LCPI0_8(%rip), %ymm4
	vinserti128	$1, %xmm2, %ymm3, %ymm2
	vmovdqa	.LCPI0_7(%rip), %ymm3
	vpsubq	%ymm15, %ymm4, %ymm4
	vpsubq	%ymm15, %ymm3, %ymm3
	vblendvpd	%ymm6, %ymm4, %ymm2, %ymm2
	vblendvpd	%ymm6, %ymm3, %ymm1, %ymm1
	vpsrlq	$32, %ymm1, %ymm4
	vpmuludq	%ymm7, %ymm1, %ymm3
	vpmuludq	%ymm1, %ymm11, %ymm1
	vpmuludq	%ymm4, %ymm11, %ymm4
	vpaddq	%ymm4, %ymm3, %ymm3
	vpsrlq	$32, %ymm2, %ymm4
	vpsllq	$32, %ymm3, %ymm3
	vpmuludq	%ymm4, %ymm11, %ymm4
	vpaddq	%ymm3, %ymm1, %ymm1
	vpmuludq	%ymm7, %ymm2, %ymm3
	vpmuludq	%ymm2, %ymm11, %ymm2
	vpsubq	%ymm1, %ymm14, %ymm1
	vmovapd	%ymm8, %ymm14
	vpaddq	%ymm4, %ymm3, %ymm3
	vpcmpeqq	%ymm10, %ymm1, %ymm4
	vpsllq	$32, %ymm3, %ymm3
	vpaddq	%ymm3, %ymm2, %ymm2
	vpsubq	%ymm2, %ymm0, %ymm0
	vpxor	%ymm1, %ymm12, %ymm2
	vpandn	%ymm2, %ymm4, %ymm2
	vpxor	%ymm0, %ymm12, %ymm3
	vpcmpeqq	%ymm10, %ymm0, %ymm4
	vpaddq	%ymm0, %ymm12, %ymm5
	vpandn	%ymm3, %ymm4, %ymm3
	vpaddq	%ymm1, %ymm12, %ymm4
	vblendvpd	%ymm2, %ymm4, %ymm1, %ymm6
	vmovdqa	-112(%rsp), %xmm1
	vblendvpd	%ymm3, %ymm5, %ymm0, %ymm5
	vpsllq	$3, %ymm8, %ymm0
	vmovdqu	-32(%rsp), %ymm8
	vmovupd	%ymm6, -64(%rsp)
	vmovupd	%ymm5, 96(%rsp)
	vpbroadcastq	%xmm1, %ymm2
	vpsllq	$3, %ymm6, %ymm1
	vpaddq	%ymm0, %ymm2, %ymm3
	vpsllq	$3, %ymm9, %ymm0
	vpaddq	%ymm1, %ymm2, %ymm1
	vpaddq	%ymm0, %ymm2, %ymm4
	vpsllq	$3, %ymm5, %ymm0
	vpextrq	$1, %xmm3, %r11
	vmovq	%xmm3, %r10
	vpaddq	%ymm0, %ymm2, %ymm0
	vextracti128	$1, %ymm4, %xmm2
	vmovq	%xmm4, %rax
	vpextrq	$1, %xmm4, %rcx
	vmovq	(%r11), %xmm6
	vmovq	(%rcx), %xmm4
	vpextrq	$1, %xmm1, %rcx
	vmovq	%xmm0, %r15
	vpextrq	$1, %xmm0, %r11
	vextracti128	$1, %ymm0, %xmm0
	vpextrq	$1, %xmm2, %rdx
	vmovq	%xmm2, %rsi
	vextracti128	$1, %ymm3, %xmm2
	vmovq	(%rsi), %xmm3
	vmovq	%xmm2, %rbx
	vpextrq	$1, %xmm2, %r14
	vmovq	(%rdx), %xmm2
	vmovq	(%rbx), %xmm5
	vmovq	%xmm0, %rbx
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	vmovq	(%rax), %xmm3
	vmovq	%xmm1, %rax
	vextracti128	$1, %ymm1, %xmm1
	vmovq	%xmm1, %rdx
	vpextrq	$1, %xmm1, %rsi
	vpunpcklqdq	%xmm4, %xmm3, %xmm3
	vmovq	(%r14), %xmm4
	vpextrq	$1, %xmm0, %r14
	vmovq	(%rsi), %xmm0
	vinserti128	$1, %xmm2, %ymm3, %ymm1
	vmovq	(%rdx), %xmm2
	vmovq	(%rax), %xmm3
	vpunpcklqdq	%xmm4, %xmm5, %xmm4
	vmovq	(%r10), %xmm5
	vpunpcklqdq	%xmm0, %xmm2, %xmm0
	vmovq	(%rcx), %xmm2
	vpunpcklqdq	%xmm6, %xmm5, %xmm5
	vmovq	(%r15), %xmm6
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	vinserti128	$1, %xmm4, %ymm5, %ymm3
	vmovq	(%rbx), %xmm4
	vmovq	(%r11), %xmm5
	vinserti128	$1, %xmm0, %ymm2, %ymm0
	vmovq	(%r14), %xmm2
	vpcmpgtq	%ymm0, %ymm10, %ymm7
	vpand	%ymm7, %ymm8, %ymm7
	vpaddq	%ymm7, %ymm0, %ymm0
	vpunpcklqdq	%xmm2, %xmm4, %xmm2
	vpunpcklqdq	%xmm5, %xmm6, %xmm4
	vpcmpgtq	%ymm1, %ymm10, %ymm5
	vinserti128	$1, %xmm2, %ymm4, %ymm2
	vpcmpgtq	%ymm3, %ymm10, %ymm4
	vpand	%ymm5, %ymm8, %ymm5
	vpand	%ymm4, %ymm8, %ymm4
	vpaddq	%ymm5, %ymm1, %ymm1
	vpaddq	%ymm4, %ymm3, %ymm3
	vpcmpgtq	%ymm2, %ymm10, %ymm6
	vpcmpgtq	%ymm3, %ymm13, %ymm5
	vpand	%ymm6, %ymm8, %ymm4
	vblendvpd	%ymm5, %ymm3, %ymm13, %ymm3
	vpcmpgtq	%ymm1, %ymm13, %ymm5
	vpaddq	%ymm4, %ymm2, %ymm2
	vpcmpgtq	%ymm0, %ymm13, %ymm4
	vblendvpd	%ymm5, %ymm1, %ymm13, %ymm1
	vblendvpd	%ymm4, %ymm0, %ymm13, %ymm0
	vpcmpgtq	%ymm2, %ymm13, %ymm5
	vpcmpgtq	%ymm10, %ymm1, %ymm4
	vblendvpd	%ymm5, %ymm2, %ymm13, %ymm2
	vpand	%ymm1, %ymm4, %ymm1
	vpcmpgtq	%ymm10, %ymm3, %ymm4
	vpcmpgtq	%ymm10, %ymm2, %ymm5
	vpand	%ymm3, %ymm4, %ymm3
	vpcmpgtq	%ymm10, %ymm0, %ymm4
	vpsllq	$2, %ymm1, %ymm1
	vpand	%ymm2, %ymm5, %ymm2
	vmovdqa	%ymm13, %ymm5
	vpand	%ymm0, %ymm4, %ymm0
	vpbroadcastq	-80(%rsp), %ymm4
	vpsllq	$2, %ymm3, %ymm3
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm1, %ymm4, %ymm1
	vpaddq	%ymm3, %ymm4, %ymm3
	vpaddq	%ymm0, %ymm4, %ymm0
	vmovq	%xmm1, %rax
	vpextrq	$1, %xmm1, %rcx
	vextracti128	$1, %ymm1, %xmm1
	vpextrq	$1, %xmm3, %r11
	vmovq	%xmm3, %r10
	vmovss	(%rax), %xmm13
	vmovq	%xmm0, %rax
	vmovss	(%r10), %xmm15
	vmovd	(%rax), %xmm8
	vmovq	%xmm1, %rdx
	vpextrq	$1, %xmm1, %rsi
	vpsllq	$2, %ymm2, %ymm1
	vextracti128	$1, %ymm3, %xmm2
	vmovss	(%rcx), %xmm3
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vpaddq	%ymm1, %ymm4, %ymm1
	vmovss	(%rdx), %xmm7
	vmovss	(%rsi), %xmm10
	vmovss	(%rcx), %xmm11
	vmovq	%xmm1, %r10
	vmovss	(%r10), %xmm12
	vmovq	%xmm2, %rbx
	vpextrq	$1, %xmm2, %r14
	vmovss	(%r11), %xmm2
	vmovq	%xmm0, %rdx
	vpextrq	$1, %xmm0, %rsi
	vextracti128	$1, %ymm1, %xmm0
	vpextrq	$1, %xmm1, %r11
	vmovss	(%rdx), %xmm1
	vmovd	(%r11), %xmm4
	vpextrq	$1, %xmm0, %rax
	vmovss	%xmm2, -116(%rsp)
	vmovss	(%rbx), %xmm2
	vmovq	%xmm0, %rbx
	vmovss	%xmm1, -128(%rsp)
	vpsllq	$2, %ymm9, %ymm1
	vmovss	(%rax), %xmm9
	vmovd	(%rbx), %xmm6
	vmovss	%xmm2, -120(%rsp)
	vmovss	(%r14), %xmm2
	vmovss	%xmm2, -124(%rsp)
	vpbroadcastq	-96(%rsp), %ymm2
	vpaddq	%ymm1, %ymm2, %ymm0
	vmovss	(%rsi), %xmm1
	vmovq	%xmm0, %rcx
	vpextrq	$1, %xmm0, %rax
	vextracti128	$1, %ymm0, %xmm0
	vmovss	%xmm13, (%rcx)
	vmovss	%xmm3, (%rax)
	vmovdqu	-64(%rsp), %ymm3
	vmovdqa	%ymm5, %ymm13
	vmovss	-128(%rsp), %xmm5
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rcx
	vpsllq	$2, %ymm14, %ymm0
	vpaddq	%ymm0, %ymm2, %ymm0
	vmovss	%xmm7, (%rax)
	vmovss	%xmm10, (%rcx)
	vmovd	-124(%rsp), %xmm7
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vmovss	%xmm15, (%rax)
	vpsllq	$2, %ymm3, %ymm3
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rdx
	vmovss	-116(%rsp), %xmm0
	vmovss	%xmm0, (%rcx)
	vmovss	-120(%rsp), %xmm0
	vmovss	%xmm0, (%rax)
	vmovdqu	96(%rsp), %ymm0
	vmovd	%xmm7, (%rdx)
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm0, %ymm2, %ymm0
	vpaddq	%ymm3, %ymm2, %ymm2
	vmovq	%xmm2, %rax
	vmovq	%xmm0, %rcx
	vmovd	%xmm8, (%rax)
	vpextrq	$1, %xmm2, %rax
	vextracti128	$1, %ymm2, %xmm2
	vmovss	%xmm11, (%rax)
	vmovq	%xmm2, %rax
	vpextrq	$1, %xmm2, %rdx
	vmovss	%xmm5, (%rax)
	vmovss	%xmm1, (%rdx)
	vmovss	%xmm12, (%rcx)
	vmovupd	(%rsp), %ymm12
	vpextrq	$1, %xmm0, %rax
	vextracti128	$1, %ymm0, %xmm0
	vmovd	%xmm4, (%rax)
	vmovq	%xmm0, %rax
	vmovd	%xmm6, (%rax)
	vpextrq	$1, %xmm0, %rax
	vmovss	%xmm9, (%rax)
	cmpq	%r9, %rdi
	jl	.LBB0_2
.LBB0_3:
	vmovdqu	%ymm13, -64(%rsp)
	cmpq	%r8, %r9
	jge	.LBB0_22
	vbroadcastsd	.LCPI0_4(%rip), %ymm1
	vpxor	%xmm8, %xmm8, %xmm8
	vpcmpeqq	%ymm8, %ymm12, %ymm0
	vmovdqa	.LCPI0_1(%rip), %ymm7
	vmovdqa	.LCPI0_0(%rip), %ymm6
	leaq	.Lmg.zeros(%rip), %r14
	vblendvpd	%ymm0, %ymm1, %ymm12, %ymm9
	vpcmpeqd	%ymm0, %ymm0, %ymm0
	vpcmpeqq	%ymm0, %ymm12, %ymm10
	vblendvpd	%ymm10, %ymm1, %ymm9, %ymm0
	vextractf128	$1, %ymm0, %xmm1
	vpextrq	$1, %xmm0, %rdi
	vmovq	%xmm0, %r10
	vpextrq	$1, %xmm0, %r11
	vmovq	%xmm0, %rbx
	vpextrq	$1, %xmm1, %rcx
	vmovq	%xmm1, %rsi
	jmp	.LBB0_5
	.p2align	4
.LBB0_21:
	addq	$8, %r9
	cmpq	%r8, %r9
	jge	.LBB0_22
.LBB0_5:
	movq	%r8, %rax
	subq	%r9, %rax
	vmovq	%rax, %xmm0
	vpbroadcastq	%xmm0, %ymm14
	vmovq	%r9, %xmm0
	vpbroadcastq	%xmm0, %ymm11
	vpaddq	%ymm6, %ymm11, %ymm15
	vpaddq	%ymm7, %ymm11, %ymm13
	vextracti128	$1, %ymm15, %xmm0
	vpextrq	$1, %xmm0, %rax
	cqto
	idivq	%rcx
	vmovq	%rax, %xmm1
	vmovq	%xmm0, %rax
	cqto
	idivq	%rsi
	vmovq	%rax, %xmm0
	vpextrq	$1, %xmm15, %rax
	cqto
	vpunpcklqdq	%xmm1, %xmm0, %xmm0
	idivq	%rdi
	vmovq	%rax, %xmm1
	vmovq	%xmm15, %rax
	cqto
	idivq	%r10
	vmovq	%rax, %xmm2
	vpunpcklqdq	%xmm1, %xmm2, %xmm1
	vextracti128	$1, %ymm13, %xmm2
	vinserti128	$1, %xmm0, %ymm1, %ymm0
	vpextrq	$1, %xmm2, %rax
	cqto
	idivq	%rcx
	vmovq	%rax, %xmm1
	vmovq	%xmm2, %rax
	cqto
	idivq	%rsi
	vmovq	%rax, %xmm2
	vpextrq	$1, %xmm13, %rax
	cqto
	vpunpcklqdq	%xmm1, %xmm2, %xmm1
	idivq	%r11
	vmovq	%rax, %xmm2
	vmovq	%xmm13, %rax
	cqto
	idivq	%rbx
	vmovq	%rax, %xmm3
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	vmovdqa	.LCPI0_5(%rip), %ymm3
	vinserti128	$1, %xmm1, %ymm2, %ymm1
	vmovdqa	.LCPI0_6(%rip), %ymm2
	vpsubq	%ymm11, %ymm3, %ymm3
	vpsubq	%ymm11, %ymm2, %ymm2
	vblendvpd	%ymm10, %ymm3, %ymm1, %ymm1
	vpcmpgtq	%ymm6, %ymm14, %ymm11
	vpcmpgtq	%ymm7, %ymm14, %ymm14
	vblendvpd	%ymm10, %ymm2, %ymm0, %ymm0
	vpsrlq	$32, %ymm9, %ymm2
	vpsrlq	$32, %ymm0, %ymm4
	vpmuludq	%ymm2, %ymm0, %ymm3
	vpmuludq	%ymm0, %ymm9, %ymm0
	vpmuludq	%ymm2, %ymm1, %ymm2
	vpmuludq	%ymm4, %ymm9, %ymm4
	vpaddq	%ymm4, %ymm3, %ymm3
	vpsllq	$32, %ymm3, %ymm3
	vpaddq	%ymm3, %ymm0, %ymm0
	vpsrlq	$32, %ymm1, %ymm3
	vpmuludq	%ymm1, %ymm9, %ymm1
	vpmuludq	%ymm3, %ymm9, %ymm3
	vpsubq	%ymm0, %ymm15, %ymm0
	vpcmpeqq	%ymm8, %ymm0, %ymm4
	vpaddq	%ymm0, %ymm12, %ymm5
	vpaddq	%ymm3, %ymm2, %ymm2
	vpsllq	$32, %ymm2, %ymm2
	vpaddq	%ymm2, %ymm1, %ymm1
	vpxor	%ymm0, %ymm12, %ymm2
	vpsubq	%ymm1, %ymm13, %ymm1
	vpandn	%ymm2, %ymm4, %ymm2
	vpxor	%ymm1, %ymm12, %ymm3
	vpcmpeqq	%ymm8, %ymm1, %ymm4
	vblendvpd	%ymm2, %ymm5, %ymm0, %ymm13
	vpandn	%ymm3, %ymm4, %ymm3
	vpaddq	%ymm1, %ymm12, %ymm4
	vpsllq	$3, %ymm13, %ymm2
	vblendvpd	%ymm3, %ymm4, %ymm1, %ymm15
	vpbroadcastq	-112(%rsp), %ymm1
	vpsllq	$3, %ymm15, %ymm0
	vpaddq	%ymm0, %ymm1, %ymm0
	vpaddq	%ymm2, %ymm1, %ymm1
	vmovq	%r14, %xmm2
	vpbroadcastq	%xmm2, %ymm12
	vblendvpd	%ymm11, %ymm1, %ymm12, %ymm1
	vblendvpd	%ymm14, %ymm0, %ymm12, %ymm0
	vextractf128	$1, %ymm1, %xmm2
	vpextrq	$1, %xmm0, %rax
	vmovq	%xmm0, %rdx
	vextracti128	$1, %ymm0, %xmm0
	vpextrq	$1, %xmm1, %r12
	vpextrq	$1, %xmm2, %r13
	vpextrq	$1, %xmm0, %r15
	vmovq	(%r13), %xmm3
	vmovq	%xmm2, %r13
	vmovq	(%r13), %xmm2
	vmovq	%xmm0, %r13
	vmovq	(%r12), %xmm0
	vmovq	%xmm1, %r12
	vmovq	(%r12), %xmm1
	vpunpcklqdq	%xmm3, %xmm2, %xmm2
	vmovq	(%rdx), %xmm3
	vpunpcklqdq	%xmm0, %xmm1, %xmm0
	vmovq	(%r15), %xmm1
	vinserti128	$1, %xmm2, %ymm0, %ymm0
	vmovq	(%r13), %xmm2
	vpunpcklqdq	%xmm1, %xmm2, %xmm1
	vmovq	(%rax), %xmm2
	vpunpcklqdq	%xmm2, %xmm3, %xmm2
	vmovdqu	-32(%rsp), %ymm3
	vinserti128	$1, %xmm1, %ymm2, %ymm1
	vpcmpgtq	%ymm0, %ymm8, %ymm2
	vpand	%ymm3, %ymm2, %ymm2
	vpaddq	%ymm2, %ymm0, %ymm0
	vpcmpgtq	%ymm1, %ymm8, %ymm2
	vpand	%ymm3, %ymm2, %ymm2
	vmovdqu	-64(%rsp), %ymm3
	vpaddq	%ymm2, %ymm1, %ymm1
	vpcmpgtq	%ymm1, %ymm3, %ymm2
	vblendvpd	%ymm2, %ymm1, %ymm3, %ymm1
	vpcmpgtq	%ymm0, %ymm3, %ymm2
	vblendvpd	%ymm2, %ymm0, %ymm3, %ymm0
	vpbroadcastq	-80(%rsp), %ymm3
	vpcmpgtq	%ymm8, %ymm1, %ymm4
	vpcmpgtq	%ymm8, %ymm0, %ymm2
	vpand	%ymm1, %ymm4, %ymm1
	vpand	%ymm0, %ymm2, %ymm0
	vpsllq	$2, %ymm1, %ymm1
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm0, %ymm3, %ymm0
	vpaddq	%ymm1, %ymm3, %ymm1
	vblendvpd	%ymm11, %ymm0, %ymm12, %ymm0
	vblendvpd	%ymm14, %ymm1, %ymm12, %ymm1
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rdx
	vextracti128	$1, %ymm0, %xmm0
	vpextrq	$1, %xmm1, %r13
	vmovq	%xmm0, %r15
	vpextrq	$1, %xmm0, %r12
	vmovss	(%rax), %xmm0
	vmovq	%xmm1, %rax
	vextracti128	$1, %ymm1, %xmm1
	vinsertps	$16, (%rdx), %xmm0, %xmm0
	vinsertps	$32, (%r15), %xmm0, %xmm0
	vinsertps	$48, (%r12), %xmm0, %xmm0
	vmovq	%xmm1, %r15
	vpextrq	$1, %xmm1, %r12
	vmovss	(%rax), %xmm1
	vinsertps	$16, (%r13), %xmm1, %xmm1
	vinsertps	$32, (%r15), %xmm1, %xmm1
	vinsertps	$48, (%r12), %xmm1, %xmm1
	vinsertf128	$1, %xmm0, %ymm1, %ymm3
	vpackssdw	%ymm11, %ymm14, %ymm0
	vpsllq	$2, %ymm15, %ymm1
	vpermq	$216, %ymm0, %ymm0
	vmovmskps	%ymm0, %eax
	vpbroadcastq	-96(%rsp), %ymm0
	vpaddq	%ymm1, %ymm0, %ymm1
	testb	$1, %al
	jne	.LBB0_6
	testb	$2, %al
	jne	.LBB0_8
.LBB0_9:
	vmovupd	(%rsp), %ymm12
	vextracti128	$1, %ymm1, %xmm1
	testb	$4, %al
	jne	.LBB0_10
.LBB0_11:
	testb	$8, %al
	je	.LBB0_13
.LBB0_12:
	vpextrq	$1, %xmm1, %rdx
	vextractps	$3, %xmm3, (%rdx)
.LBB0_13:
	vpsllq	$2, %ymm13, %ymm1
	vpaddq	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm3, %xmm0
	testb	$16, %al
	jne	.LBB0_14
	testb	$32, %al
	jne	.LBB0_16
.LBB0_17:
	vextracti128	$1, %ymm1, %xmm1
	testb	$64, %al
	jne	.LBB0_18
.LBB0_19:
	testb	$-128, %al
	je	.LBB0_21
	jmp	.LBB0_20
	.p2align	4
.LBB0_6:
	vmovq	%xmm1, %rdx
	vmovss	%xmm3, (%rdx)
	testb	$2, %al
	je	.LBB0_9
.LBB0_8:
	vpextrq	$1, %xmm1, %rdx
	vextractps	$1, %xmm3, (%rdx)
	vmovupd	(%rsp), %ymm12
	vextracti128	$1, %ymm1, %xmm1
	testb	$4, %al
	je	.LBB0_11
.LBB0_10:
	vmovq	%xmm1, %rdx
	vextractps	$2, %xmm3, (%rdx)
	testb	$8, %al
	jne	.LBB0_12
	jmp	.LBB0_13
	.p2align	4
.LBB0_14:
	vmovq	%xmm1, %rdx
	vmovss	%xmm0, (%rdx)
	testb	$32, %al
	je	.LBB0_17
.LBB0_16:
	vpextrq	$1, %xmm1, %rdx
	vextractps	$1, %xmm0, (%rdx)
	vextracti128	$1, %ymm1, %xmm1
	testb	$64, %al
	je	.LBB0_19
.LBB0_18:
	vmovq	%xmm1, %rdx
	vextractps	$2, %xmm0, (%rdx)
	testb	$-128, %al
	je	.LBB0_21
.LBB0_20:
	vpextrq	$1, %xmm1, %rax
	vextractps	$3, %xmm0, (%rax)
	jmp	.LBB0_21
.LBB0_22:
	addq	$128, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	vzeroupper
	retq
.Lfunc_end0:
	.size	_unsafe_index_9a23cda8cc43b70d.0.range, .Lfunc_end0-_unsafe_index_9a23cda8cc43b70d.0.range

	.globl	_unsafe_index_9a23cda8cc43b70d
	.p2align	4
	.type	_unsafe_index_9a23cda8cc43b70d,@function
_unsafe_index_9a23cda8cc43b70d:
	subq	$24, %rsp
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	movq	24(%rdi), %rcx
	leaq	20(%rsp), %r8
	movl	$0, 20(%rsp)
	movq	$0, (%rsp)
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	_unsafe_index_9a23cda8cc43b70d.0.range
	movl	20(%rsp), %eax
	addq	$24, %rsp
	retq
.Lfunc_end1:
	.size	_unsafe_index_9a23cda8cc43b70d, .Lfunc_end1-_unsafe_index_9a23cda8cc43b70d

	.type	.Lmg.zeros,@object
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.Lmg.zeros:
	.zero	256
	.size	.Lmg.zeros, 256

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.section	.rodata.cst16,"aM",@progbits,16
	.p2align	4, 0x0
.LCPI0_0:
	.zero	16,1
.LCPI0_3:
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.byte	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.zero	1
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_1:
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_2:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
	.section	.rodata,"a",@progbits
.LCPI0_4:
	.byte	1
	.text
	.p2align	4
	.type	le_ca158744855abb16.0.range,@function
le_ca158744855abb16.0.range:
	movq	(%rdx), %rax
	leaq	15(%rax), %rcx
	testq	%rax, %rax
	cmovnsq	%rax, %rcx
	movq	%rcx, %rdx
	shrq	$4, %rdx
	sarq	$63, %rcx
	andnq	%rdx, %rcx, %rcx
	shlq	$4, %rcx
	testq	%rcx, %rcx
	jle	.LBB0_3
	vpbroadcastb	.LCPI0_4(%rip), %xmm1
	xorl	%edx, %edx
	vxorps	%xmm0, %xmm0, %xmm0
	.p2align	4
.LBB0_2:
	vmovups	(%rdi,%rdx,4), %ymm2
	vmovups	32(%rdi,%rdx,4), %ymm3
	vcmpleps	%ymm0, %ymm2, %ymm2
	vcmpleps	%ymm0, %ymm3, %ymm3
	vextractf128	$1, %ymm2, %xmm4
	vextractf128	$1, %ymm3, %xmm5
	vpackssdw	%xmm4, %xmm2, %xmm2
	vpackssdw	%xmm5, %xmm3, %xmm3
	vpacksswb	%xmm3, %xmm2, %xmm2
	vpand	%xmm1, %xmm2, %xmm2
	vmovdqu	%xmm2, (%rsi,%rdx)
	addq	$16, %rdx
	cmpq	%rcx, %rdx
	jl	.LBB0_2
.LBB0_3:
	cmpq	%rax, %rcx
	jge	.LBB0_22
	vmovdqa	.LCPI0_1(%rip), %ymm0
	vmovdqa	.LCPI0_2(%rip), %ymm1
	vpbroadcastb	.LCPI0_4(%rip), %xmm3
	vpxor	%xmm2, %xmm2, %xmm2
	jmp	.LBB0_5
	.p2align	4
.LBB0_21:
	addq	$8, %rcx
	cmpq	%rax, %rcx
	jge	.LBB0_22
.LBB0_5:
	movq	%rax, %rdx
	subq	%rcx, %rdx
	vmovq	%rdx, %xmm4
	leaq	(%rsi,%rcx), %rdx
	vpbroadcastq	%xmm4, %ymm4
	vpcmpgtq	%ymm0, %ymm4, %ymm5
	vpcmpgtq	%ymm1, %ymm4, %ymm4
	vpackssdw	%ymm5, %ymm4, %ymm5
	vextracti128	$1, %ymm5, %xmm4
	vpackssdw	%xmm4, %xmm5, %xmm4
	vpermq	$216, %ymm5, %ymm5
	vpshufd	$216, %xmm4, %xmm4
	vpmovzxwd	%xmm4, %ymm4
	vpslld	$31, %ymm4, %ymm4
	vmovmskps	%ymm5, %r8d
	vmaskmovps	(%rdi,%rcx,4), %ymm4, %ymm4
	vcmpleps	%ymm2, %ymm4, %ymm4
	vextractf128	$1, %ymm4, %xmm6
	vpackssdw	%xmm6, %xmm4, %xmm4
	vpacksswb	%xmm4, %xmm4, %xmm4
	vpand	%xmm3, %xmm4, %xmm4
	testb	$1, %r8b
	jne	.LBB0_6
	testb	$2, %r8b
	jne	.LBB0_8
.LBB0_9:
	testb	$4, %r8b
	jne	.LBB0_10
.LBB0_11:
	testb	$8, %r8b
	jne	.LBB0_12
.LBB0_13:
	testb	$16, %r8b
	jne	.LBB0_14
.LBB0_15:
	testb	$32, %r8b
	jne	.LBB0_16
.LBB0_17:
	testb	$64, %r8b
	jne	.LBB0_18
.LBB0_19:
	testb	$-128, %r8b
	je	.LBB0_21
	jmp	.LBB0_20
	.p2align	4
.LBB0_6:
	vpextrb	$0, %xmm4, (%rdx)
	testb	$2, %r8b
	je	.LBB0_9
.LBB0_8:
	vpextrb	$1, %xmm4, 1(%rdx)
	testb	$4, %r8b
	je	.LBB0_11
.LBB0_10:
	vpextrb	$2, %xmm4, 2(%rdx)
	testb	$8, %r8b
	je	.LBB0_13
.LBB0_12:
	vpextrb	$3, %xmm4, 3(%rdx)
	testb	$16, %r8b
	je	.LBB0_15
.LBB0_14:
	vpextrb	$4, %xmm4, 4(%rdx)
	testb	$32, %r8b
	je	.LBB0_17
.LBB0_16:
	vpextrb	$5, %xmm4, 5(%rdx)
	testb	$64, %r8b
	je	.LBB0_19
.LBB0_18:
	vpextrb	$6, %xmm4, 6(%rdx)
	testb	$-128, %r8b
	je	.LBB0_21
.LBB0_20:
	vpextrb	$7, %xmm4, 7(%rdx)
	jmp	.LBB0_21
.LBB0_22:
	vzeroupper
	retq
.Lfunc_end0:
	.size	le_ca158744855abb16.0.range, .Lfunc_end0-le_ca158744855abb16.0.range

	.globl	le_ca158744855abb16
	.p2align	4
	.type	le_ca158744855abb16,@function
le_ca158744855abb16:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	leaq	4(%rsp), %rcx
	movl	$0, 4(%rsp)
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	le_ca158744855abb16.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	le_ca158744855abb16, .Lfunc_end1-le_ca158744855abb16

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	number_560c048ef9fea9fb.0.range,@function
number_560c048ef9fea9fb.0.range:
	movq	(%rdi), %rax
	testq	%rax, %rax
	js	.LBB0_2
	movq	%rax, 272(%rsi)
.LBB0_4:
	retq
.LBB0_2:
	movl	$1, %esi
	xorl	%eax, %eax
	lock		cmpxchgl	%esi, (%rcx)
	jne	.LBB0_4
	movq	$1, (%rdx)
	movq	$1, 8(%rdx)
	retq
.Lfunc_end0:
	.size	number_560c048ef9fea9fb.0.range, .Lfunc_end0-number_560c048ef9fea9fb.0.range

	.globl	number_560c048ef9fea9fb
	.p2align	4
	.type	number_560c048ef9fea9fb,@function
number_560c048ef9fea9fb:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	leaq	4(%rsp), %rcx
	movl	$0, 4(%rsp)
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	movq	%rax, %rdi
	callq	number_560c048ef9fea9fb.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	number_560c048ef9fea9fb, .Lfunc_end1-number_560c048ef9fea9fb

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_0:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
.LCPI0_1:
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_2:
	.quad	8
	.quad	9
	.quad	10
	.quad	11
.LCPI0_3:
	.quad	12
	.quad	13
	.quad	14
	.quad	15
.LCPI0_5:
	.quad	-4
	.quad	-5
	.quad	-6
	.quad	-7
.LCPI0_6:
	.quad	0
	.quad	-1
	.quad	-2
	.quad	-3
.LCPI0_7:
	.quad	-12
	.quad	-13
	.quad	-14
	.quad	-15
.LCPI0_8:
	.quad	-8
	.quad	-9
	.quad	-10
	.quad	-11
	.section	.rodata.cst8,"aM",@progbits,8
	.p2align	3, 0x0
.LCPI0_4:
	.quad	1
	.text
	.p2align	4
	.type	_unsafe_index_cat_72ed525a236382ed.0.range,@function
_unsafe_index_cat_72ed525a236382ed.0.range:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$200, %rsp
	movq	(%r8), %r9
	vbroadcastsd	32(%r8), %ymm1
	vpbroadcastq	16(%r8), %ymm13
	vbroadcastsd	8(%r8), %ymm8
	vpbroadcastq	24(%r8), %ymm4
	vmovq	%rdx, %xmm2
	vmovq	%rdi, %xmm3
	vmovq	%rcx, %xmm5
	vmovdqa	%xmm2, -80(%rsp)
	vmovq	%rsi, %xmm2
	vmovdqa	%xmm3, -96(%rsp)
	vmovdqa	%xmm5, -128(%rsp)
	vmovdqa	%xmm2, -112(%rsp)
	leaq	15(%r9), %rax
	testq	%r9, %r9
	vmovq	%r9, %xmm0
	cmovnsq	%r9, %rax
	vpbroadcastq	%xmm0, %ymm0
	movq	%rax, %r10
	shrq	$4, %r10
	sarq	$63, %rax
	andnq	%r10, %rax, %r10
	vmovups	%ymm1, 64(%rsp)
	vmovdqu	%ymm13, 32(%rsp)
	vmovupd	%ymm8, (%rsp)
	vmovdqu	%ymm0, -32(%rsp)
	shlq	$4, %r10
	testq	%r10, %r10
	jle	.LBB0_3
	vbroadcastsd	.LCPI0_4(%rip), %ymm1
	xorl	%edi, %edi
	vmovups	%ymm1, 128(%rsp)
	.p2align	4
.LBB0_2:
	vmovupd	128(%rsp), %ymm3
	vmovq	%rdi, %xmm1
	vpxor	%xmm13, %xmm13, %xmm13
	vpcmpeqq	%ymm13, %ymm0, %ymm2
	vmovdqa	.LCPI0_6(%rip), %ymm8
	addq	$16, %rdi
	vpbroadcastq	%xmm1, %ymm15
	vpaddq	.LCPI0_1(%rip), %ymm15, %ymm1
	vpaddq	.LCPI0_0(%rip), %ymm15, %ymm5
	vpaddq	.LCPI0_3(%rip), %ymm15, %ymm11
	vpaddq	.LCPI0_2(%rip), %ymm15, %ymm10
	vblendvpd	%ymm2, %ymm3, %ymm0, %ymm9
	vpcmpeqd	%ymm2, %ymm2, %ymm2
	vpsubq	%ymm15, %ymm8, %ymm8
	vpcmpeqq	%ymm2, %ymm0, %ymm12
	vpextrq	$1, %xmm1, %rcx
	vblendvpd	%ymm12, %ymm3, %ymm9, %ymm2
	vextracti128	$1, %ymm1, %xmm3
	vextractf128	$1, %ymm2, %xmm6
	vpextrq	$1, %xmm2, %rsi
	vmovq	%xmm2, %r12
	vpextrq	$1, %xmm2, %r14
	vmovq	%xmm2, %r15
	vpextrq	$1, %xmm3, %rax
	vpextrq	$1, %xmm6, %r11
	cqto
	vmovq	%xmm6, %rbx
	idivq	%r11
	vmovq	%rax, %xmm7
	vmovq	%xmm3, %rax
	cqto
	idivq	%rbx
	vmovq	%rax, %xmm3
	movq	%rcx, %rax
	cqto
	vmovq	%xmm1, %rcx
	idivq	%rsi
	vpunpcklqdq	%xmm7, %xmm3, %xmm3
	vmovq	%rax, %xmm6
	movq	%rcx, %rax
	cqto
	idivq	%r12
	vmovq	%rax, %xmm7
	vpunpcklqdq	%xmm6, %xmm7, %xmm6
	vinserti128	$1, %xmm3, %ymm6, %ymm3
	vextracti128	$1, %ymm5, %xmm6
	vpextrq	$1, %xmm6, %rax
	vmovq	%xmm6, %rcx
	cqto
	idivq	%r11
	vmovq	%rax, %xmm6
	movq	%rcx, %rax
	cqto
	vmovq	%xmm5, %rcx
	idivq	%rbx
	vmovq	%rax, %xmm7
	vpextrq	$1, %xmm5, %rax
	cqto
	vpunpcklqdq	%xmm6, %xmm7, %xmm6
	idivq	%r14
	vmovq	%rax, %xmm7
	movq	%rcx, %rax
	cqto
	idivq	%r15
	vmovq	%rax, %xmm2
	vpunpcklqdq	%xmm7, %xmm2, %xmm2
	vmovdqa	.LCPI0_5(%rip), %ymm7
	vinserti128	$1, %xmm6, %ymm2, %ymm2
	vpsrlq	$32, %ymm9, %ymm6
	vblendvpd	%ymm12, %ymm8, %ymm2, %ymm2
	vpsrlq	$32, %ymm2, %ymm8
	vpmuludq	%ymm9, %ymm8, %ymm8
	vpsubq	%ymm15, %ymm7, %ymm7
	vblendvpd	%ymm12, %ymm7, %ymm3, %ymm3
	vpsrlq	$32, %ymm3, %ymm14
	vpmuludq	%ymm6, %ymm3, %ymm7
	vpmuludq	%ymm3, %ymm9, %ymm3
	vpmuludq	%ymm9, %ymm14, %ymm14
	vpaddq	%ymm7, %ymm14, %ymm7
	vextracti128	$1, %ymm10, %xmm14
	vpsllq	$32, %ymm7, %ymm7
	vpaddq	%ymm7, %ymm3, %ymm3
	vpmuludq	%ymm6, %ymm2, %ymm7
	vpmuludq	%ymm2, %ymm9, %ymm2
	vpsubq	%ymm3, %ymm1, %ymm3
	vpaddq	%ymm7, %ymm8, %ymm7
	vpsllq	$32, %ymm7, %ymm7
	vpaddq	%ymm7, %ymm2, %ymm2
	vextracti128	$1, %ymm11, %xmm7
	vpsubq	%ymm2, %ymm5, %ymm1
	vpxor	%ymm0, %ymm3, %ymm2
	vpcmpeqq	%ymm13, %ymm3, %ymm5
	vpandn	%ymm2, %ymm5, %ymm2
	vpaddq	%ymm0, %ymm3, %ymm5
	vblendvpd	%ymm2, %ymm5, %ymm3, %ymm5
	vpcmpeqq	%ymm13, %ymm1, %ymm3
	vpxor	%ymm0, %ymm1, %ymm2
	vpextrq	$1, %xmm7, %rax
	vpandn	%ymm2, %ymm3, %ymm2
	vmovdqa	.LCPI0_8(%rip), %ymm3
	cqto
	idivq	%r11
	vpsubq	%ymm15, %ymm3, %ymm3
	vmovq	%rax, %xmm8
	vmovq	%xmm7, %rax
	cqto
	idivq	%rbx
	movq	%rax, %rcx
	vpextrq	$1, %xmm11, %rax
	vmovq	%rcx, %xmm7
	vpextrq	$1, %xmm14, %rcx
	cqto
	vpunpcklqdq	%xmm8, %xmm7, %xmm7
	idivq	%rsi
	movq	%rax, %rsi
	vmovq	%xmm11, %rax
	vmovq	%rsi, %xmm8
	cqto
	idivq	%r12
	vmovq	%rax, %xmm13
	movq	%rcx, %rax
	cqto
	idivq	%r11
	vpunpcklqdq	%xmm8, %xmm13, %xmm8
	vinserti128	$1, %xmm7, %ymm8, %ymm7
	movq	%rax, %rcx
	vmovq	%xmm14, %rax
	vmovq	%rcx, %xmm8
	cqto
	idivq	%rbx
	vmovq	%rax, %xmm13
	vpextrq	$1, %xmm10, %rax
	cqto
	vpunpcklqdq	%xmm8, %xmm13, %xmm8
	idivq	%r14
	vmovq	%rax, %xmm13
	vmovq	%xmm10, %rax
	cqto
	idivq	%r15
	vmovq	%rax, %xmm14
	leaq	.Lmg.zeros(%rip), %rax
	vpunpcklqdq	%xmm13, %xmm14, %xmm13
	vpaddq	%ymm0, %ymm1, %ymm14
	vinserti128	$1, %xmm8, %ymm13, %ymm8
	vmovdqa	.LCPI0_7(%rip), %ymm13
	vblendvpd	%ymm12, %ymm3, %ymm8, %ymm3
	vpsubq	%ymm15, %ymm13, %ymm13
	vpsllq	$2, %ymm5, %ymm15
	vblendvpd	%ymm12, %ymm13, %ymm7, %ymm7
	vpsrlq	$32, %ymm7, %ymm12
	vpmuludq	%ymm6, %ymm7, %ymm8
	vpmuludq	%ymm7, %ymm9, %ymm7
	vpmuludq	%ymm6, %ymm3, %ymm6
	vpmuludq	%ymm9, %ymm12, %ymm12
	vpaddq	%ymm12, %ymm8, %ymm8
	vpsllq	$32, %ymm8, %ymm8
	vpaddq	%ymm7, %ymm8, %ymm7
	vpsrlq	$32, %ymm3, %ymm8
	vpmuludq	%ymm3, %ymm9, %ymm3
	vpmuludq	%ymm9, %ymm8, %ymm8
	vpaddq	%ymm6, %ymm8, %ymm6
	vpxor	%xmm8, %xmm8, %xmm8
	vpsllq	$32, %ymm6, %ymm6
	vpaddq	%ymm6, %ymm3, %ymm3
	vblendvpd	%ymm2, %ymm14, %ymm1, %ymm6
	vpbroadcastq	-80(%rsp), %ymm14
	vpsubq	%ymm7, %ymm11, %ymm2
	vpxor	%xmm11, %xmm11, %xmm11
	vpsubq	%ymm3, %ymm10, %ymm1
	vpcmpeqq	%ymm8, %ymm2, %ymm7
	vpxor	%ymm0, %ymm2, %ymm3
	vpaddq	%ymm0, %ymm2, %ymm9
	vpandn	%ymm3, %ymm7, %ymm3
	vpxor	%ymm0, %ymm1, %ymm7
	vpcmpeqq	%ymm8, %ymm1, %ymm8
	vblendvpd	%ymm3, %ymm9, %ymm2, %ymm12
	vpcmpgtq	%ymm6, %ymm4, %ymm2
	vpcmpgtq	%ymm5, %ymm4, %ymm3
	vpandn	%ymm7, %ymm8, %ymm7
	vpaddq	%ymm0, %ymm1, %ymm8
	vmovdqa	%ymm4, %ymm9
	vpackssdw	%ymm3, %ymm2, %ymm0
	vblendvpd	%ymm7, %ymm8, %ymm1, %ymm7
	vmovq	%rax, %xmm8
	vmovdqu	%ymm0, 160(%rsp)
	vpsllq	$2, %ymm6, %ymm0
	vpbroadcastq	%xmm8, %ymm8
	vmovdqu	%ymm0, -64(%rsp)
	vpaddq	%ymm0, %ymm14, %ymm1
	vmovdqu	64(%rsp), %ymm0
	vpaddq	%ymm15, %ymm14, %ymm10
	vblendvpd	%ymm3, %ymm10, %ymm8, %ymm10
	vblendvpd	%ymm2, %ymm1, %ymm8, %ymm1
	vmovq	%xmm10, %r14
	vpextrq	$1, %xmm10, %r15
	vextracti128	$1, %ymm10, %xmm10
	vmovq	%xmm1, %rcx
	vpextrq	$1, %xmm1, %rdx
	vextracti128	$1, %ymm1, %xmm1
	vmovq	%xmm10, %rbx
	vpextrq	$1, %xmm10, %r11
	vpsllq	$2, %ymm12, %ymm10
	vpextrq	$1, %xmm1, %rax
	vmovq	%xmm1, %rsi
	vpcmpgtq	%ymm12, %ymm4, %ymm1
	vpaddq	%ymm0, %ymm5, %ymm13
	vpbroadcastq	-96(%rsp), %ymm5
	vpaddq	%ymm0, %ymm6, %ymm6
	vpaddq	%ymm0, %ymm12, %ymm12
	vpsllq	$3, %ymm13, %ymm13
	vpsllq	$3, %ymm6, %ymm6
	vpaddq	%ymm5, %ymm13, %ymm13
	vpaddq	%ymm6, %ymm5, %ymm6
	vblendvpd	%ymm3, %ymm8, %ymm13, %ymm3
	vpaddq	%ymm10, %ymm14, %ymm13
	vblendvpd	%ymm2, %ymm8, %ymm6, %ymm2
	vmovss	(%rcx), %xmm6
	vblendvpd	%ymm1, %ymm13, %ymm8, %ymm13
	vinsertps	$16, (%rdx), %xmm6, %xmm6
	vmovq	%xmm2, %rdx
	vpextrq	$1, %xmm3, %rcx
	vmovq	%xmm13, %r12
	vpextrq	$1, %xmm13, %r13
	vextracti128	$1, %ymm13, %xmm13
	vinsertps	$32, (%rsi), %xmm6, %xmm6
	vpextrq	$1, %xmm2, %rsi
	vextracti128	$1, %ymm2, %xmm2
	vinsertps	$48, (%rax), %xmm6, %xmm6
	vmovq	%xmm3, %rax
	vextracti128	$1, %ymm3, %xmm3
	vmovq	%xmm13, %rbp
	vpextrq	$1, %xmm13, %r8
	vmovss	(%r14), %xmm13
	vinsertps	$16, (%r15), %xmm13, %xmm13
	vmovq	%xmm3, %r14
	vpextrq	$1, %xmm3, %r15
	vinsertps	$32, (%rbx), %xmm13, %xmm13
	vpextrq	$1, %xmm2, %rbx
	vinsertps	$48, (%r11), %xmm13, %xmm13
	vmovq	%xmm2, %r11
	vpaddq	%ymm0, %ymm7, %ymm2
	vmovq	(%rbx), %xmm3
	vpcmpgtq	%ymm7, %ymm9, %ymm0
	vpsllq	$3, %ymm2, %ymm4
	vpsllq	$3, %ymm12, %ymm2
	vmovq	(%r11), %xmm12
	vpaddq	%ymm2, %ymm5, %ymm2
	vpaddq	%ymm4, %ymm5, %ymm4
	vmovq	(%rsi), %xmm5
	vblendvpd	%ymm1, %ymm8, %ymm2, %ymm2
	vinsertf128	$1, %xmm13, %ymm6, %ymm6
	vpunpcklqdq	%xmm3, %xmm12, %xmm3
	vmovq	(%rdx), %xmm12
	vpunpcklqdq	%xmm5, %xmm12, %xmm5
	vmovq	(%r14), %xmm12
	vinserti128	$1, %xmm3, %ymm5, %ymm3
	vmovq	(%r15), %xmm5
	vpunpcklqdq	%xmm5, %xmm12, %xmm13
	vpsllq	$2, %ymm7, %ymm12
	vpaddq	%ymm12, %ymm14, %ymm5
	vblendvpd	%ymm0, %ymm5, %ymm8, %ymm5
	vmovq	%xmm5, %rdx
	vpextrq	$1, %xmm5, %rsi
	vextracti128	$1, %ymm5, %xmm5
	vmovq	%xmm5, %r11
	vpextrq	$1, %xmm5, %rbx
	vmovss	(%r12), %xmm5
	vinsertps	$16, (%r13), %xmm5, %xmm5
	vinsertps	$32, (%rbp), %xmm5, %xmm5
	vinsertps	$48, (%r8), %xmm5, %xmm7
	vpackssdw	%ymm1, %ymm0, %ymm5
	vblendvpd	%ymm0, %ymm8, %ymm4, %ymm0
	vmovq	(%rcx), %xmm1
	vmovq	(%rax), %xmm4
	vpextrq	$1, %xmm2, %rax
	vmovq	%xmm2, %rcx
	vmovq	%xmm0, %r15
	vpextrq	$1, %xmm0, %r8
	vextracti128	$1, %ymm0, %xmm0
	vpunpcklqdq	%xmm1, %xmm4, %xmm1
	vmovss	(%rdx), %xmm4
	vmovq	%xmm0, %rdx
	vinsertps	$16, (%rsi), %xmm4, %xmm4
	vinserti128	$1, %xmm13, %ymm1, %ymm8
	vmovdqu	32(%rsp), %ymm13
	vinsertps	$32, (%r11), %xmm4, %xmm1
	vpextrq	$1, %xmm0, %r11
	vinsertps	$48, (%rbx), %xmm1, %xmm0
	vextracti128	$1, %ymm2, %xmm1
	vmovq	(%r11), %xmm4
	vmovq	%xmm1, %rbx
	vpextrq	$1, %xmm1, %r14
	vmovq	(%r15), %xmm1
	vmovq	(%rbx), %xmm2
	vinsertf128	$1, %xmm7, %ymm0, %ymm7
	vmovq	(%r8), %xmm0
	vpunpcklqdq	%xmm0, %xmm1, %xmm1
	vmovq	(%r14), %xmm0
	vpunpcklqdq	%xmm0, %xmm2, %xmm2
	vpcmpgtq	%ymm3, %ymm11, %ymm0
	vpand	%ymm0, %ymm13, %ymm0
	vpaddq	%ymm0, %ymm3, %ymm0
	vmovq	(%rdx), %xmm3
	vpunpcklqdq	%xmm4, %xmm3, %xmm14
	vpcmpgtq	%ymm8, %ymm11, %ymm3
	vpand	%ymm3, %ymm13, %ymm3
	vpaddq	%ymm3, %ymm8, %ymm3
	vmovdqu	(%rsp), %ymm8
	vpcmpgtq	%ymm3, %ymm8, %ymm4
	vblendvpd	%ymm4, %ymm3, %ymm8, %ymm3
	vpcmpgtq	%ymm0, %ymm8, %ymm4
	vblendvpd	%ymm4, %ymm0, %ymm8, %ymm0
	vpcmpgtq	%ymm11, %ymm0, %ymm4
	vpand	%ymm0, %ymm4, %ymm0
	vpcmpgtq	%ymm11, %ymm3, %ymm4
	vpand	%ymm3, %ymm4, %ymm4
	vpbroadcastq	-112(%rsp), %ymm3
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm0, %ymm3, %ymm0
	vmovq	%xmm0, %rdx
	vpextrq	$1, %xmm0, %rsi
	vextracti128	$1, %ymm0, %xmm0
	vmovq	%xmm0, %r8
	vpextrq	$1, %xmm0, %r11
	vpsllq	$2, %ymm4, %ymm0
	vinserti128	$1, %xmm14, %ymm1, %ymm4
	vmovss	(%rdx), %xmm1
	vmovq	(%rcx), %xmm14
	vpaddq	%ymm0, %ymm3, %ymm0
	vinsertps	$16, (%rsi), %xmm1, %xmm1
	vmovq	%xmm0, %rbx
	vpextrq	$1, %xmm0, %r14
	vextracti128	$1, %ymm0, %xmm0
	vinsertps	$32, (%r8), %xmm1, %xmm1
	vinsertps	$48, (%r11), %xmm1, %xmm1
	vpextrq	$1, %xmm0, %r15
	vmovq	%xmm0, %r12
	vmovss	(%rbx), %xmm0
	vinsertps	$16, (%r14), %xmm0, %xmm0
	vinsertps	$32, (%r12), %xmm0, %xmm0
	vinsertps	$48, (%r15), %xmm0, %xmm0
	vinsertf128	$1, %xmm0, %ymm1, %ymm0
	vpermpd	$216, 160(%rsp), %ymm1
	vblendvps	%ymm1, %ymm6, %ymm0, %ymm1
	vmovq	(%rax), %xmm0
	vpunpcklqdq	%xmm0, %xmm14, %xmm0
	vinserti128	$1, %xmm2, %ymm0, %ymm0
	vpcmpgtq	%ymm4, %ymm11, %ymm2
	vpand	%ymm2, %ymm13, %ymm2
	vpaddq	%ymm2, %ymm4, %ymm2
	vpcmpgtq	%ymm0, %ymm11, %ymm4
	vpand	%ymm4, %ymm13, %ymm4
	vpaddq	%ymm4, %ymm0, %ymm0
	vpcmpgtq	%ymm0, %ymm8, %ymm4
	vblendvpd	%ymm4, %ymm0, %ymm8, %ymm0
	vpcmpgtq	%ymm2, %ymm8, %ymm4
	vblendvpd	%ymm4, %ymm2, %ymm8, %ymm2
	vpcmpgtq	%ymm11, %ymm2, %ymm4
	vpand	%ymm2, %ymm4, %ymm2
	vpcmpgtq	%ymm11, %ymm0, %ymm4
	vpand	%ymm0, %ymm4, %ymm0
	vpsllq	$2, %ymm2, %ymm2
	vmovdqa	%ymm9, %ymm4
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm2, %ymm3, %ymm2
	vpaddq	%ymm0, %ymm3, %ymm0
	vmovq	%xmm2, %rax
	vpextrq	$1, %xmm2, %rcx
	vextracti128	$1, %ymm2, %xmm2
	vmovdqa	-128(%rsp), %xmm3
	vpextrq	$1, %xmm0, %rdx
	vmovq	%xmm0, %r8
	vextracti128	$1, %ymm0, %xmm0
	vmovq	%xmm2, %rsi
	vpextrq	$1, %xmm2, %rbx
	vmovss	(%rax), %xmm2
	vpextrq	$1, %xmm0, %r11
	vmovq	%xmm0, %r14
	vmovss	(%r8), %xmm0
	vinsertps	$16, (%rcx), %xmm2, %xmm2
	vinsertps	$16, (%rdx), %xmm0, %xmm0
	vinsertps	$32, (%rsi), %xmm2, %xmm2
	vinsertps	$32, (%r14), %xmm0, %xmm0
	vinsertps	$48, (%rbx), %xmm2, %xmm2
	vinsertps	$48, (%r11), %xmm0, %xmm0
	vpbroadcastq	%xmm3, %ymm3
	vinsertf128	$1, %xmm0, %ymm2, %ymm0
	vpermq	$216, %ymm5, %ymm2
	vblendvps	%ymm2, %ymm7, %ymm0, %ymm2
	vpaddq	%ymm3, %ymm15, %ymm0
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vmovq	%xmm0, %rdx
	vpextrq	$1, %xmm0, %rsi
	vpaddq	-64(%rsp), %ymm3, %ymm0
	vmovq	%xmm0, %r8
	vpextrq	$1, %xmm0, %r11
	vextracti128	$1, %ymm0, %xmm0
	vmovss	%xmm1, (%r8)
	vextractps	$1, %xmm1, (%r11)
	vmovq	%xmm0, %rbx
	vpextrq	$1, %xmm0, %r14
	vpaddq	%ymm3, %ymm10, %ymm0
	vpaddq	%ymm3, %ymm12, %ymm3
	vextractps	$2, %xmm1, (%rbx)
	vextractps	$3, %xmm1, (%r14)
	vextractf128	$1, %ymm1, %xmm1
	vmovq	%xmm0, %r8
	vmovq	%xmm3, %r15
	vpextrq	$1, %xmm3, %r12
	vextracti128	$1, %ymm3, %xmm3
	vmovss	%xmm1, (%rax)
	vextractps	$1, %xmm1, (%rcx)
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vextractps	$2, %xmm1, (%rdx)
	vextractps	$3, %xmm1, (%rsi)
	vmovq	%xmm3, %r13
	vpextrq	$1, %xmm3, %rbp
	vmovss	%xmm2, (%r15)
	vextractps	$1, %xmm2, (%r12)
	vextractps	$2, %xmm2, (%r13)
	vextractps	$3, %xmm2, (%rbp)
	vpextrq	$1, %xmm0, %rdx
	vmovq	%xmm0, %rsi
	vextractf128	$1, %ymm2, %xmm0
	vmovss	%xmm0, (%r8)
	vextractps	$1, %xmm0, (%rcx)
	vextractps	$2, %xmm0, (%rsi)
	vextractps	$3, %xmm0, (%rdx)
	vmovupd	-32(%rsp), %ymm0
	cmpq	%r10, %rdi
	jl	.LBB0_2
.LBB0_3:
	cmpq	%r9, %r10
	jge	.LBB0_22
	vbroadcastsd	.LCPI0_4(%rip), %ymm1
	vmovdqa	%ymm0, %ymm8
	vpxor	%xmm0, %xmm0, %xmm0
	vpcmpeqq	%ymm0, %ymm8, %ymm0
	vmovdqa	.LCPI0_0(%rip), %ymm10
	vmovdqa	.LCPI0_1(%rip), %ymm11
	leaq	.Lmg.zeros(%rip), %r15
	vmovdqa	%ymm4, %ymm14
	vmovdqu	%ymm4, 96(%rsp)
	vpxor	%xmm13, %xmm13, %xmm13
	vblendvpd	%ymm0, %ymm1, %ymm8, %ymm12
	vpcmpeqd	%ymm0, %ymm0, %ymm0
	vpcmpeqq	%ymm0, %ymm8, %ymm0
	vmovdqu	%ymm0, -64(%rsp)
	vblendvpd	%ymm0, %ymm1, %ymm12, %ymm0
	vextractf128	$1, %ymm0, %xmm1
	vpextrq	$1, %xmm0, %r8
	vmovq	%xmm0, %r11
	vpextrq	$1, %xmm0, %rbx
	vmovq	%xmm0, %r14
	vpextrq	$1, %xmm1, %rsi
	vmovq	%xmm1, %rdi
	jmp	.LBB0_5
	.p2align	4
.LBB0_21:
	addq	$8, %r10
	cmpq	%r9, %r10
	jge	.LBB0_22
.LBB0_5:
	movq	%r9, %rax
	subq	%r10, %rax
	vmovq	%rax, %xmm0
	vpbroadcastq	%xmm0, %ymm1
	vmovq	%r10, %xmm0
	vpbroadcastq	%xmm0, %ymm3
	vpaddq	%ymm3, %ymm11, %ymm5
	vpaddq	%ymm3, %ymm10, %ymm2
	vextracti128	$1, %ymm5, %xmm0
	vpextrq	$1, %xmm0, %rax
	cqto
	idivq	%rsi
	vmovq	%rax, %xmm4
	vmovq	%xmm0, %rax
	cqto
	idivq	%rdi
	vmovq	%rax, %xmm0
	vpextrq	$1, %xmm5, %rax
	cqto
	vpunpcklqdq	%xmm4, %xmm0, %xmm0
	idivq	%r8
	vmovq	%rax, %xmm4
	vmovq	%xmm5, %rax
	cqto
	idivq	%r11
	vmovq	%rax, %xmm6
	vpunpcklqdq	%xmm4, %xmm6, %xmm4
	vinserti128	$1, %xmm0, %ymm4, %ymm6
	vextracti128	$1, %ymm2, %xmm0
	vpextrq	$1, %xmm0, %rax
	cqto
	idivq	%rsi
	vmovq	%rax, %xmm4
	vmovq	%xmm0, %rax
	cqto
	idivq	%rdi
	vmovq	%rax, %xmm0
	vpextrq	$1, %xmm2, %rax
	cqto
	vpunpcklqdq	%xmm4, %xmm0, %xmm0
	idivq	%rbx
	movq	%rax, %rcx
	vmovq	%xmm2, %rax
	vmovq	%rcx, %xmm4
	cqto
	idivq	%r14
	vmovq	%rax, %xmm7
	vpunpcklqdq	%xmm4, %xmm7, %xmm4
	vmovdqa	.LCPI0_6(%rip), %ymm7
	vinserti128	$1, %xmm0, %ymm4, %ymm0
	vmovdqa	.LCPI0_5(%rip), %ymm4
	vpsubq	%ymm3, %ymm4, %ymm4
	vpsubq	%ymm3, %ymm7, %ymm3
	vmovupd	-64(%rsp), %ymm7
	vblendvpd	%ymm7, %ymm3, %ymm0, %ymm0
	vblendvpd	%ymm7, %ymm4, %ymm6, %ymm3
	vpsrlq	$32, %ymm12, %ymm4
	vpsrlq	$32, %ymm3, %ymm7
	vpmuludq	%ymm4, %ymm3, %ymm6
	vpmuludq	%ymm3, %ymm12, %ymm3
	vpmuludq	%ymm4, %ymm0, %ymm4
	vpmuludq	%ymm7, %ymm12, %ymm7
	vpaddq	%ymm7, %ymm6, %ymm6
	vpsllq	$32, %ymm6, %ymm6
	vpaddq	%ymm6, %ymm3, %ymm3
	vpsrlq	$32, %ymm0, %ymm6
	vpmuludq	%ymm0, %ymm12, %ymm0
	vpmuludq	%ymm6, %ymm12, %ymm6
	vpaddq	%ymm6, %ymm4, %ymm4
	vpsllq	$32, %ymm4, %ymm4
	vpaddq	%ymm4, %ymm0, %ymm0
	vpsubq	%ymm0, %ymm2, %ymm0
	vpsubq	%ymm3, %ymm5, %ymm2
	vpxor	%ymm2, %ymm8, %ymm3
	vpcmpeqq	%ymm13, %ymm2, %ymm5
	vpxor	%ymm0, %ymm8, %ymm4
	vpaddq	%ymm2, %ymm8, %ymm6
	vpandn	%ymm3, %ymm5, %ymm3
	vpcmpeqq	%ymm13, %ymm0, %ymm5
	vpandn	%ymm4, %ymm5, %ymm4
	vpaddq	%ymm0, %ymm8, %ymm5
	vpbroadcastq	-80(%rsp), %ymm8
	vblendvpd	%ymm3, %ymm6, %ymm2, %ymm2
	vpcmpgtq	%ymm10, %ymm1, %ymm6
	vblendvpd	%ymm4, %ymm5, %ymm0, %ymm9
	vpcmpgtq	%ymm2, %ymm14, %ymm15
	vpsllq	$2, %ymm2, %ymm5
	vpcmpgtq	%ymm9, %ymm14, %ymm3
	vpcmpgtq	%ymm11, %ymm1, %ymm14
	vmovq	%r15, %xmm1
	vpbroadcastq	%xmm1, %ymm1
	vpand	%ymm14, %ymm15, %ymm4
	vpand	%ymm6, %ymm3, %ymm0
	vpaddq	%ymm5, %ymm8, %ymm7
	vblendvpd	%ymm4, %ymm7, %ymm1, %ymm4
	vpsllq	$2, %ymm9, %ymm7
	vpaddq	%ymm7, %ymm8, %ymm8
	vmovq	%xmm4, %r13
	vblendvpd	%ymm0, %ymm8, %ymm1, %ymm0
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vmovq	%xmm0, %rdx
	vpextrq	$1, %xmm0, %r12
	vmovss	(%r13), %xmm0
	vpextrq	$1, %xmm4, %r13
	vextracti128	$1, %ymm4, %xmm4
	vinsertps	$16, (%r13), %xmm0, %xmm0
	vmovq	%xmm4, %r13
	vinsertps	$32, (%r13), %xmm0, %xmm0
	vpextrq	$1, %xmm4, %r13
	vmovss	(%rax), %xmm4
	vinsertps	$16, (%rcx), %xmm4, %xmm4
	vinsertps	$48, (%r13), %xmm0, %xmm0
	vinsertps	$32, (%rdx), %xmm4, %xmm4
	vinsertps	$48, (%r12), %xmm4, %xmm4
	vinsertf128	$1, %xmm0, %ymm4, %ymm8
	vmovdqu	64(%rsp), %ymm4
	vpaddq	%ymm4, %ymm2, %ymm0
	vpaddq	%ymm4, %ymm9, %ymm2
	vpbroadcastq	-96(%rsp), %ymm4
	vpsllq	$3, %ymm2, %ymm2
	vpsllq	$3, %ymm0, %ymm0
	vpaddq	%ymm2, %ymm4, %ymm9
	vpackssdw	%ymm15, %ymm3, %ymm2
	vpandn	%ymm6, %ymm3, %ymm3
	vpaddq	%ymm0, %ymm4, %ymm0
	vpandn	%ymm14, %ymm15, %ymm4
	vblendvpd	%ymm3, %ymm9, %ymm1, %ymm3
	vblendvpd	%ymm4, %ymm0, %ymm1, %ymm0
	vmovq	%xmm3, %rax
	vpextrq	$1, %xmm3, %rcx
	vextracti128	$1, %ymm3, %xmm3
	vmovq	%xmm0, %rbp
	vmovq	%xmm3, %rdx
	vpextrq	$1, %xmm3, %r12
	vextracti128	$1, %ymm0, %xmm3
	vpextrq	$1, %xmm3, %r13
	vmovq	(%r13), %xmm4
	vmovq	%xmm3, %r13
	vmovq	(%r13), %xmm3
	vpextrq	$1, %xmm0, %r13
	vmovq	(%rbp), %xmm0
	vmovq	(%r13), %xmm9
	vpunpcklqdq	%xmm4, %xmm3, %xmm3
	vmovq	(%rdx), %xmm4
	vpunpcklqdq	%xmm9, %xmm0, %xmm0
	vmovq	(%rax), %xmm9
	vinserti128	$1, %xmm3, %ymm0, %ymm0
	vmovq	(%r12), %xmm3
	vpunpcklqdq	%xmm3, %xmm4, %xmm3
	vmovq	(%rcx), %xmm4
	vpunpcklqdq	%xmm4, %xmm9, %xmm4
	vmovdqu	32(%rsp), %ymm9
	vinserti128	$1, %xmm3, %ymm4, %ymm3
	vpcmpgtq	%ymm0, %ymm13, %ymm4
	vpand	%ymm4, %ymm9, %ymm4
	vpaddq	%ymm4, %ymm0, %ymm0
	vpcmpgtq	%ymm3, %ymm13, %ymm4
	vpand	%ymm4, %ymm9, %ymm4
	vmovdqu	(%rsp), %ymm9
	vpaddq	%ymm4, %ymm3, %ymm3
	vpcmpgtq	%ymm3, %ymm9, %ymm4
	vblendvpd	%ymm4, %ymm3, %ymm9, %ymm3
	vpcmpgtq	%ymm0, %ymm9, %ymm4
	vblendvpd	%ymm4, %ymm0, %ymm9, %ymm0
	vpbroadcastq	-112(%rsp), %ymm9
	vpcmpgtq	%ymm13, %ymm3, %ymm15
	vpcmpgtq	%ymm13, %ymm0, %ymm4
	vpand	%ymm3, %ymm15, %ymm3
	vpand	%ymm0, %ymm4, %ymm0
	vpsllq	$2, %ymm3, %ymm3
	vpsllq	$2, %ymm0, %ymm0
	vpaddq	%ymm0, %ymm9, %ymm0
	vpaddq	%ymm3, %ymm9, %ymm3
	vblendvpd	%ymm14, %ymm0, %ymm1, %ymm0
	vblendvpd	%ymm6, %ymm3, %ymm1, %ymm1
	vmovq	%xmm0, %rax
	vpextrq	$1, %xmm0, %rcx
	vextracti128	$1, %ymm0, %xmm0
	vpextrq	$1, %xmm1, %r13
	vmovq	%xmm0, %rdx
	vpextrq	$1, %xmm0, %r12
	vmovss	(%rax), %xmm0
	vmovq	%xmm1, %rax
	vextracti128	$1, %ymm1, %xmm1
	vinsertps	$16, (%rcx), %xmm0, %xmm0
	vinsertps	$32, (%rdx), %xmm0, %xmm0
	vinsertps	$48, (%r12), %xmm0, %xmm0
	vmovq	%xmm1, %rdx
	vpextrq	$1, %xmm1, %r12
	vmovss	(%rax), %xmm1
	vinsertps	$16, (%r13), %xmm1, %xmm1
	vinsertps	$32, (%rdx), %xmm1, %xmm1
	vinsertps	$48, (%r12), %xmm1, %xmm1
	vinsertf128	$1, %xmm0, %ymm1, %ymm0
	vpermq	$216, %ymm2, %ymm1
	vpbroadcastq	-128(%rsp), %ymm2
	vblendvps	%ymm1, %ymm8, %ymm0, %ymm1
	vpackssdw	%ymm14, %ymm6, %ymm0
	vpermq	$216, %ymm0, %ymm0
	vpaddq	%ymm7, %ymm2, %ymm3
	vmovmskps	%ymm0, %eax
	testb	$1, %al
	je	.LBB0_7
	vmovq	%xmm3, %rcx
	vmovss	%xmm1, (%rcx)
.LBB0_7:
	testb	$2, %al
	je	.LBB0_9
	vpextrq	$1, %xmm3, %rcx
	vextractps	$1, %xmm1, (%rcx)
.LBB0_9:
	vmovupd	-32(%rsp), %ymm8
	vmovdqu	96(%rsp), %ymm14
	vextracti128	$1, %ymm3, %xmm3
	testb	$4, %al
	jne	.LBB0_10
	testb	$8, %al
	jne	.LBB0_12
.LBB0_13:
	vextractf128	$1, %ymm1, %xmm1
	vpaddq	%ymm5, %ymm2, %ymm2
	testb	$16, %al
	jne	.LBB0_14
.LBB0_15:
	testb	$32, %al
	jne	.LBB0_16
.LBB0_17:
	vextracti128	$1, %ymm2, %xmm2
	testb	$64, %al
	jne	.LBB0_18
.LBB0_19:
	testb	$-128, %al
	je	.LBB0_21
	jmp	.LBB0_20
	.p2align	4
.LBB0_10:
	vmovq	%xmm3, %rcx
	vextractps	$2, %xmm1, (%rcx)
	testb	$8, %al
	je	.LBB0_13
.LBB0_12:
	vpextrq	$1, %xmm3, %rcx
	vextractps	$3, %xmm1, (%rcx)
	vextractf128	$1, %ymm1, %xmm1
	vpaddq	%ymm5, %ymm2, %ymm2
	testb	$16, %al
	je	.LBB0_15
.LBB0_14:
	vmovq	%xmm2, %rcx
	vmovss	%xmm1, (%rcx)
	testb	$32, %al
	je	.LBB0_17
.LBB0_16:
	vpextrq	$1, %xmm2, %rcx
	vextractps	$1, %xmm1, (%rcx)
	vextracti128	$1, %ymm2, %xmm2
	testb	$64, %al
	je	.LBB0_19
.LBB0_18:
	vmovq	%xmm2, %rcx
	vextractps	$2, %xmm1, (%rcx)
	testb	$-128, %al
	je	.LBB0_21
.LBB0_20:
	vpextrq	$1, %xmm2, %rax
	vextractps	$3, %xmm1, (%rax)
	jmp	.LBB0_21
.LBB0_22:
	addq	$200, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end0:
	.size	_unsafe_index_cat_72ed525a236382ed.0.range, .Lfunc_end0-_unsafe_index_cat_72ed525a236382ed.0.range

	.globl	_unsafe_index_cat_72ed525a236382ed
	.p2align	4
	.type	_unsafe_index_cat_72ed525a236382ed,@function
_unsafe_index_cat_72ed525a236382ed:
	subq	$24, %rsp
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	movq	24(%rdi), %rcx
	movq	32(%rdi), %r8
	leaq	20(%rsp), %r9
	movl	$0, 20(%rsp)
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%xmm0, (%rsp)
	movq	%rax, %rdi
	callq	_unsafe_index_cat_72ed525a236382ed.0.range
	movl	20(%rsp), %eax
	addq	$24, %rsp
	retq
.Lfunc_end1:
	.size	_unsafe_index_cat_72ed525a236382ed, .Lfunc_end1-_unsafe_index_cat_72ed525a236382ed

	.type	.Lmg.zeros,@object
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.Lmg.zeros:
	.zero	256
	.size	.Lmg.zeros, 256

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	full_clone_8d05f45f4d447d3a.0.range,@function
full_clone_8d05f45f4d447d3a.0.range:
	movq	(%rsi), %rax
	movq	%rax, (%rdi)
	retq
.Lfunc_end0:
	.size	full_clone_8d05f45f4d447d3a.0.range, .Lfunc_end0-full_clone_8d05f45f4d447d3a.0.range

	.globl	full_clone_8d05f45f4d447d3a
	.p2align	4
	.type	full_clone_8d05f45f4d447d3a,@function
full_clone_8d05f45f4d447d3a:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	leaq	4(%rsp), %rdx
	movl	$0, 4(%rsp)
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	movq	%rax, %rdi
	callq	full_clone_8d05f45f4d447d3a.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	full_clone_8d05f45f4d447d3a, .Lfunc_end1-full_clone_8d05f45f4d447d3a

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	full_clone_6c87a435804594c6.0.range,@function
full_clone_6c87a435804594c6.0.range:
	movq	(%rsi), %rax
	movq	%rax, (%rdi)
	retq
.Lfunc_end0:
	.size	full_clone_6c87a435804594c6.0.range, .Lfunc_end0-full_clone_6c87a435804594c6.0.range

	.globl	full_clone_6c87a435804594c6
	.p2align	4
	.type	full_clone_6c87a435804594c6,@function
full_clone_6c87a435804594c6:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	leaq	4(%rsp), %rdx
	movl	$0, 4(%rsp)
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	movq	%rax, %rdi
	callq	full_clone_6c87a435804594c6.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	full_clone_6c87a435804594c6, .Lfunc_end1-full_clone_6c87a435804594c6

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	sizes_8d99b2087c8256c1.0.range,@function
sizes_8d99b2087c8256c1.0.range:
	movq	232(%rdi), %rax
	cmpq	352(%rdi), %rax
	jg	.LBB0_2
	movq	%rax, 240(%rdi)
.LBB0_4:
	retq
.LBB0_2:
	movl	$1, %ecx
	xorl	%eax, %eax
	lock		cmpxchgl	%ecx, (%rdx)
	jne	.LBB0_4
	movq	$1, (%rsi)
	movq	$1, 8(%rsi)
	retq
.Lfunc_end0:
	.size	sizes_8d99b2087c8256c1.0.range, .Lfunc_end0-sizes_8d99b2087c8256c1.0.range

	.globl	sizes_8d99b2087c8256c1
	.p2align	4
	.type	sizes_8d99b2087c8256c1,@function
sizes_8d99b2087c8256c1:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	leaq	4(%rsp), %rdx
	movl	$0, 4(%rsp)
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	movq	%rax, %rdi
	callq	sizes_8d99b2087c8256c1.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	sizes_8d99b2087c8256c1, .Lfunc_end1-sizes_8d99b2087c8256c1

	.section	".note.GNU-stack","",@progbits

	.file	"<string>"
	.text
	.p2align	4
	.type	sizes_aea7e532549b8d9e.0.range,@function
sizes_aea7e532549b8d9e.0.range:
	movq	232(%rdi), %rax
	cmpq	360(%rdi), %rax
	jg	.LBB0_3
	movq	272(%rdi), %rcx
	cmpq	368(%rdi), %rcx
	jg	.LBB0_3
	addq	%rcx, %rax
	movq	%rax, 280(%rdi)
	movq	232(%rdi), %rax
	movq	272(%rdi), %rcx
	movq	%rax, %rdx
	negq	%rdx
	movq	%rax, 304(%rdi)
	movq	%rdx, 312(%rdi)
	movq	%rax, 320(%rdi)
	movq	%rcx, 328(%rdi)
.LBB0_5:
	retq
.LBB0_3:
	movl	$1, %ecx
	xorl	%eax, %eax
	lock		cmpxchgl	%ecx, (%rdx)
	jne	.LBB0_5
	movq	$1, (%rsi)
	movq	$1, 8(%rsi)
	retq
.Lfunc_end0:
	.size	sizes_aea7e532549b8d9e.0.range, .Lfunc_end0-sizes_aea7e532549b8d9e.0.range

	.globl	sizes_aea7e532549b8d9e
	.p2align	4
	.type	sizes_aea7e532549b8d9e,@function
sizes_aea7e532549b8d9e:
	pushq	%rax
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	leaq	4(%rsp), %rdx
	movl	$0, 4(%rsp)
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	movq	%rax, %rdi
	callq	sizes_aea7e532549b8d9e.0.range
	movl	4(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end1:
	.size	sizes_aea7e532549b8d9e, .Lfunc_end1-sizes_aea7e532549b8d9e

	.section	".note.GNU-stack","",@progbits
