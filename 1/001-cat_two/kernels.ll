target triple = "x86_64-unknown-linux-gnu"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare i64 @llvm.smax.i64(i64, i64)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, <8 x i1>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, <8 x i1>)
declare <8 x i64> @llvm.smin.v8i64(<8 x i64>, <8 x i64>)
declare <8 x i64> @llvm.smax.v8i64(<8 x i64>, <8 x i64>)
declare void @llvm.masked.scatter.v8f32.v8p0(<8 x float>, <8 x ptr>, <8 x i1>)
@mg.zeros = private constant [256 x i8] zeroinitializer, align 64
define internal void @gt_89a39850d9ac4740.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p2, align 8
  %v2 = sub i64 %v1, 0
  %v3 = sdiv i64 %v2, 16
  %v4 = call i64 @llvm.smax.i64(i64 %v3, i64 0)
  %v5 = mul i64 %v4, 16
  %v6 = add i64 0, %v5
  br label %guard7
guard7:
  %v10 = icmp slt i64 0, %v6
  br i1 %v10, label %enter8, label %exit9
enter8:
  br label %loop11
loop11:
  %v12 = phi i64 [ 0, %enter8 ], [ %v23, %latch24 ]
  %v13 = getelementptr float, ptr %p0, i64 %v12
  %v14 = load <8 x float>, ptr %v13, align 4
  %v15 = getelementptr float, ptr %v13, i64 8
  %v16 = load <8 x float>, ptr %v15, align 4
  %v17 = fcmp ogt <8 x float> %v14, splat (float 0x0000000000000000)
  %v18 = fcmp ogt <8 x float> %v16, splat (float 0x0000000000000000)
  %v19 = zext <8 x i1> %v17 to <8 x i8>
  %v20 = zext <8 x i1> %v18 to <8 x i8>
  %v21 = getelementptr i8, ptr %p1, i64 %v12
  store <8 x i8> %v19, ptr %v21, align 1
  %v22 = getelementptr i8, ptr %v21, i64 8
  store <8 x i8> %v20, ptr %v22, align 1
  %v23 = add nsw i64 %v12, 16
  br label %latch24
latch24:
  %v25 = icmp slt i64 %v23, %v6
  br i1 %v25, label %loop11, label %exit9
exit9:
  br label %guard26
guard26:
  %v29 = icmp slt i64 %v6, %v1
  br i1 %v29, label %enter27, label %exit28
enter27:
  br label %loop30
loop30:
  %v31 = phi i64 [ %v6, %enter27 ], [ %v41, %latch42 ]
  %v32 = sub i64 %v1, %v31
  %v33 = insertelement <8 x i64> poison, i64 %v32, i64 0
  %v34 = shufflevector <8 x i64> %v33, <8 x i64> poison, <8 x i32> zeroinitializer
  %v35 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %v34
  %v36 = getelementptr float, ptr %p0, i64 %v31
  %v37 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %v36, <8 x i1> %v35, <8 x float> zeroinitializer)
  %v38 = fcmp ogt <8 x float> %v37, splat (float 0x0000000000000000)
  %v39 = zext <8 x i1> %v38 to <8 x i8>
  %v40 = getelementptr i8, ptr %p1, i64 %v31
  call void @llvm.masked.store.v8i8.p0(<8 x i8> %v39, ptr align 1 %v40, <8 x i1> %v35)
  %v41 = add nsw i64 %v31, 8
  br label %latch42
latch42:
  %v43 = icmp slt i64 %v41, %v1
  br i1 %v43, label %loop30, label %exit28
exit28:
  br label %leave
leave:
  ret void
}

define i32 @gt_89a39850d9ac4740(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = alloca i32, align 4
  store i32 0, ptr %v7, align 4
  call void @gt_89a39850d9ac4740.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v7, i64 0, i64 0)
  br label %leave
leave:
  %v8 = load i32, ptr %v7, align 4
  ret i32 %v8
}

define internal void @compact_093767ae38dd41e5.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %p3, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p3, align 8
  br label %guard2
guard2:
  %v5 = icmp slt i64 0, %v1
  br i1 %v5, label %enter3, label %exit4
enter3:
  br label %loop6
loop6:
  %v7 = phi i64 [ 0, %enter3 ], [ %v15, %latch16 ]
  %v8 = phi i64 [ 0, %enter3 ], [ %v14, %latch16 ]
  %v9 = getelementptr i64, ptr %p1, i64 %v8
  store i64 %v7, ptr %v9, align 8
  %v10 = getelementptr i8, ptr %p0, i64 %v7
  %v11 = load i8, ptr %v10, align 1
  %v12 = icmp ne i8 %v11, 0
  %v13 = zext i1 %v12 to i64
  %v14 = add i64 %v8, %v13
  %v15 = add nsw i64 %v7, 1
  br label %latch16
latch16:
  %v17 = icmp slt i64 %v15, %v1
  br i1 %v17, label %loop6, label %exit4
exit4:
  %v18 = phi i64 [ 0, %guard2 ], [ %v14, %latch16 ]
  store i64 %v18, ptr %p2, align 8
  br label %leave
leave:
  ret void
}

define i32 @compact_093767ae38dd41e5(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = getelementptr ptr, ptr %args, i64 3
  %v8 = load ptr, ptr %v7, align 8
  %v9 = alloca i32, align 4
  store i32 0, ptr %v9, align 4
  call void @compact_093767ae38dd41e5.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v8, ptr %v9, i64 0, i64 0)
  br label %leave
leave:
  %v10 = load i32, ptr %v9, align 4
  ret i32 %v10
}

define internal void @clone_07de6c46ffda2c1b.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p2, align 8
  %v2 = sub i64 %v1, 0
  %v3 = sdiv i64 %v2, 16
  %v4 = call i64 @llvm.smax.i64(i64 %v3, i64 0)
  %v5 = mul i64 %v4, 16
  %v6 = add i64 0, %v5
  br label %guard7
guard7:
  %v10 = icmp slt i64 0, %v6
  br i1 %v10, label %enter8, label %exit9
enter8:
  br label %loop11
loop11:
  %v12 = phi i64 [ 0, %enter8 ], [ %v19, %latch20 ]
  %v13 = getelementptr float, ptr %p0, i64 %v12
  %v14 = load <8 x float>, ptr %v13, align 4
  %v15 = getelementptr float, ptr %v13, i64 8
  %v16 = load <8 x float>, ptr %v15, align 4
  %v17 = getelementptr float, ptr %p1, i64 %v12
  store <8 x float> %v14, ptr %v17, align 4
  %v18 = getelementptr float, ptr %v17, i64 8
  store <8 x float> %v16, ptr %v18, align 4
  %v19 = add nsw i64 %v12, 16
  br label %latch20
latch20:
  %v21 = icmp slt i64 %v19, %v6
  br i1 %v21, label %loop11, label %exit9
exit9:
  br label %guard22
guard22:
  %v25 = icmp slt i64 %v6, %v1
  br i1 %v25, label %enter23, label %exit24
enter23:
  br label %loop26
loop26:
  %v27 = phi i64 [ %v6, %enter23 ], [ %v35, %latch36 ]
  %v28 = sub i64 %v1, %v27
  %v29 = insertelement <8 x i64> poison, i64 %v28, i64 0
  %v30 = shufflevector <8 x i64> %v29, <8 x i64> poison, <8 x i32> zeroinitializer
  %v31 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %v30
  %v32 = getelementptr float, ptr %p0, i64 %v27
  %v33 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %v32, <8 x i1> %v31, <8 x float> zeroinitializer)
  %v34 = getelementptr float, ptr %p1, i64 %v27
  call void @llvm.masked.store.v8f32.p0(<8 x float> %v33, ptr align 4 %v34, <8 x i1> %v31)
  %v35 = add nsw i64 %v27, 8
  br label %latch36
latch36:
  %v37 = icmp slt i64 %v35, %v1
  br i1 %v37, label %loop26, label %exit24
exit24:
  br label %leave
leave:
  ret void
}

define i32 @clone_07de6c46ffda2c1b(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = alloca i32, align 4
  store i32 0, ptr %v7, align 4
  call void @clone_07de6c46ffda2c1b.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v7, i64 0, i64 0)
  br label %leave
leave:
  %v8 = load i32, ptr %v7, align 4
  ret i32 %v8
}

define internal void @number_e300714c709fb3d0.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p0, align 8
  %v2 = icmp sge i64 %v1, 0
  br i1 %v2, label %fine3, label %failed4
failed4:
  %v5 = cmpxchg ptr %flag, i32 0, i32 1 acq_rel monotonic
  %v6 = extractvalue { i32, i1 } %v5, 1
  br i1 %v6, label %write7, label %leave
write7:
  %v8 = getelementptr i64, ptr %p2, i64 0
  store i64 1, ptr %v8, align 8
  %v9 = getelementptr i64, ptr %p2, i64 1
  store i64 1, ptr %v9, align 8
  br label %leave
fine3:
  %v10 = getelementptr i64, ptr %p1, i64 29
  store i64 %v1, ptr %v10, align 8
  br label %leave
leave:
  ret void
}

define i32 @number_e300714c709fb3d0(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = alloca i32, align 4
  store i32 0, ptr %v7, align 4
  call void @number_e300714c709fb3d0.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v7, i64 0, i64 0)
  br label %leave
leave:
  %v8 = load i32, ptr %v7, align 4
  ret i32 %v8
}

define internal void @_unsafe_index_9a23cda8cc43b70d.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %p3, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p3, align 8
  %v2 = sub i64 %v1, 0
  %v3 = sdiv i64 %v2, 16
  %v4 = call i64 @llvm.smax.i64(i64 %v3, i64 0)
  %v5 = mul i64 %v4, 16
  %v6 = add i64 0, %v5
  %v17 = insertelement <8 x i64> poison, i64 %v1, i64 0
  %v18 = shufflevector <8 x i64> %v17, <8 x i64> poison, <8 x i32> zeroinitializer
  %v101 = getelementptr i64, ptr %p3, i64 2
  %v102 = load i64, ptr %v101, align 8
  %v103 = insertelement <8 x i64> poison, i64 %v102, i64 0
  %v104 = shufflevector <8 x i64> %v103, <8 x i64> poison, <8 x i32> zeroinitializer
  %v109 = getelementptr i64, ptr %p3, i64 1
  %v110 = load i64, ptr %v109, align 8
  %v111 = insertelement <8 x i64> poison, i64 %v110, i64 0
  %v112 = shufflevector <8 x i64> %v111, <8 x i64> poison, <8 x i32> zeroinitializer
  br label %guard7
guard7:
  %v10 = icmp slt i64 0, %v6
  br i1 %v10, label %enter8, label %exit9
enter8:
  br label %loop11
loop11:
  %v12 = phi i64 [ 0, %enter8 ], [ %v201, %latch202 ]
  %v13 = insertelement <8 x i64> poison, i64 %v12, i64 0
  %v14 = shufflevector <8 x i64> %v13, <8 x i64> poison, <8 x i32> zeroinitializer
  %v15 = add <8 x i64> %v14, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %v16 = add <8 x i64> %v14, <i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %v19 = icmp eq <8 x i64> %v18, zeroinitializer
  %v20 = select <8 x i1> %v19, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v21 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v22 = select <8 x i1> %v21, <8 x i64> splat (i64 1), <8 x i64> %v20
  %v23 = sdiv <8 x i64> %v15, %v22
  %v24 = sub <8 x i64> zeroinitializer, %v15
  %v25 = select <8 x i1> %v21, <8 x i64> %v24, <8 x i64> %v23
  %v26 = mul <8 x i64> %v25, %v20
  %v27 = sub <8 x i64> %v15, %v26
  %v28 = xor <8 x i64> %v27, %v18
  %v29 = icmp slt <8 x i64> %v28, zeroinitializer
  %v30 = icmp ne <8 x i64> %v27, zeroinitializer
  %v31 = and <8 x i1> %v29, %v30
  %v32 = add <8 x i64> %v27, %v18
  %v33 = select <8 x i1> %v31, <8 x i64> %v32, <8 x i64> %v27
  %v34 = icmp eq <8 x i64> %v18, zeroinitializer
  %v35 = select <8 x i1> %v34, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v36 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v37 = select <8 x i1> %v36, <8 x i64> splat (i64 1), <8 x i64> %v35
  %v38 = sdiv <8 x i64> %v16, %v37
  %v39 = sub <8 x i64> zeroinitializer, %v16
  %v40 = select <8 x i1> %v36, <8 x i64> %v39, <8 x i64> %v38
  %v41 = mul <8 x i64> %v40, %v35
  %v42 = sub <8 x i64> %v16, %v41
  %v43 = xor <8 x i64> %v42, %v18
  %v44 = icmp slt <8 x i64> %v43, zeroinitializer
  %v45 = icmp ne <8 x i64> %v42, zeroinitializer
  %v46 = and <8 x i1> %v44, %v45
  %v47 = add <8 x i64> %v42, %v18
  %v48 = select <8 x i1> %v46, <8 x i64> %v47, <8 x i64> %v42
  %v49 = getelementptr i64, ptr %p0, <8 x i64> %v33
  %v50 = getelementptr i64, ptr %p0, <8 x i64> %v48
  %v51 = extractelement <8 x ptr> %v49, i64 0
  %v52 = extractelement <8 x ptr> %v49, i64 1
  %v53 = extractelement <8 x ptr> %v49, i64 2
  %v54 = extractelement <8 x ptr> %v49, i64 3
  %v55 = extractelement <8 x ptr> %v49, i64 4
  %v56 = extractelement <8 x ptr> %v49, i64 5
  %v57 = extractelement <8 x ptr> %v49, i64 6
  %v58 = extractelement <8 x ptr> %v49, i64 7
  %v59 = load i64, ptr %v51, align 8
  %v60 = insertelement <8 x i64> poison, i64 %v59, i64 0
  %v61 = load i64, ptr %v52, align 8
  %v62 = insertelement <8 x i64> %v60, i64 %v61, i64 1
  %v63 = load i64, ptr %v53, align 8
  %v64 = insertelement <8 x i64> %v62, i64 %v63, i64 2
  %v65 = load i64, ptr %v54, align 8
  %v66 = insertelement <8 x i64> %v64, i64 %v65, i64 3
  %v67 = load i64, ptr %v55, align 8
  %v68 = insertelement <8 x i64> %v66, i64 %v67, i64 4
  %v69 = load i64, ptr %v56, align 8
  %v70 = insertelement <8 x i64> %v68, i64 %v69, i64 5
  %v71 = load i64, ptr %v57, align 8
  %v72 = insertelement <8 x i64> %v70, i64 %v71, i64 6
  %v73 = load i64, ptr %v58, align 8
  %v74 = insertelement <8 x i64> %v72, i64 %v73, i64 7
  %v75 = extractelement <8 x ptr> %v50, i64 0
  %v76 = extractelement <8 x ptr> %v50, i64 1
  %v77 = extractelement <8 x ptr> %v50, i64 2
  %v78 = extractelement <8 x ptr> %v50, i64 3
  %v79 = extractelement <8 x ptr> %v50, i64 4
  %v80 = extractelement <8 x ptr> %v50, i64 5
  %v81 = extractelement <8 x ptr> %v50, i64 6
  %v82 = extractelement <8 x ptr> %v50, i64 7
  %v83 = load i64, ptr %v75, align 8
  %v84 = insertelement <8 x i64> poison, i64 %v83, i64 0
  %v85 = load i64, ptr %v76, align 8
  %v86 = insertelement <8 x i64> %v84, i64 %v85, i64 1
  %v87 = load i64, ptr %v77, align 8
  %v88 = insertelement <8 x i64> %v86, i64 %v87, i64 2
  %v89 = load i64, ptr %v78, align 8
  %v90 = insertelement <8 x i64> %v88, i64 %v89, i64 3
  %v91 = load i64, ptr %v79, align 8
  %v92 = insertelement <8 x i64> %v90, i64 %v91, i64 4
  %v93 = load i64, ptr %v80, align 8
  %v94 = insertelement <8 x i64> %v92, i64 %v93, i64 5
  %v95 = load i64, ptr %v81, align 8
  %v96 = insertelement <8 x i64> %v94, i64 %v95, i64 6
  %v97 = load i64, ptr %v82, align 8
  %v98 = insertelement <8 x i64> %v96, i64 %v97, i64 7
  %v99 = icmp slt <8 x i64> %v74, zeroinitializer
  %v100 = icmp slt <8 x i64> %v98, zeroinitializer
  %v105 = select <8 x i1> %v99, <8 x i64> %v104, <8 x i64> zeroinitializer
  %v106 = select <8 x i1> %v100, <8 x i64> %v104, <8 x i64> zeroinitializer
  %v107 = add <8 x i64> %v74, %v105
  %v108 = add <8 x i64> %v98, %v106
  %v113 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v107, <8 x i64> %v112)
  %v114 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v108, <8 x i64> %v112)
  %v115 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v113, <8 x i64> zeroinitializer)
  %v116 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v114, <8 x i64> zeroinitializer)
  %v117 = getelementptr float, ptr %p1, <8 x i64> %v115
  %v118 = getelementptr float, ptr %p1, <8 x i64> %v116
  %v119 = extractelement <8 x ptr> %v117, i64 0
  %v120 = extractelement <8 x ptr> %v117, i64 1
  %v121 = extractelement <8 x ptr> %v117, i64 2
  %v122 = extractelement <8 x ptr> %v117, i64 3
  %v123 = extractelement <8 x ptr> %v117, i64 4
  %v124 = extractelement <8 x ptr> %v117, i64 5
  %v125 = extractelement <8 x ptr> %v117, i64 6
  %v126 = extractelement <8 x ptr> %v117, i64 7
  %v127 = load float, ptr %v119, align 4
  %v128 = insertelement <8 x float> poison, float %v127, i64 0
  %v129 = load float, ptr %v120, align 4
  %v130 = insertelement <8 x float> %v128, float %v129, i64 1
  %v131 = load float, ptr %v121, align 4
  %v132 = insertelement <8 x float> %v130, float %v131, i64 2
  %v133 = load float, ptr %v122, align 4
  %v134 = insertelement <8 x float> %v132, float %v133, i64 3
  %v135 = load float, ptr %v123, align 4
  %v136 = insertelement <8 x float> %v134, float %v135, i64 4
  %v137 = load float, ptr %v124, align 4
  %v138 = insertelement <8 x float> %v136, float %v137, i64 5
  %v139 = load float, ptr %v125, align 4
  %v140 = insertelement <8 x float> %v138, float %v139, i64 6
  %v141 = load float, ptr %v126, align 4
  %v142 = insertelement <8 x float> %v140, float %v141, i64 7
  %v143 = extractelement <8 x ptr> %v118, i64 0
  %v144 = extractelement <8 x ptr> %v118, i64 1
  %v145 = extractelement <8 x ptr> %v118, i64 2
  %v146 = extractelement <8 x ptr> %v118, i64 3
  %v147 = extractelement <8 x ptr> %v118, i64 4
  %v148 = extractelement <8 x ptr> %v118, i64 5
  %v149 = extractelement <8 x ptr> %v118, i64 6
  %v150 = extractelement <8 x ptr> %v118, i64 7
  %v151 = load float, ptr %v143, align 4
  %v152 = insertelement <8 x float> poison, float %v151, i64 0
  %v153 = load float, ptr %v144, align 4
  %v154 = insertelement <8 x float> %v152, float %v153, i64 1
  %v155 = load float, ptr %v145, align 4
  %v156 = insertelement <8 x float> %v154, float %v155, i64 2
  %v157 = load float, ptr %v146, align 4
  %v158 = insertelement <8 x float> %v156, float %v157, i64 3
  %v159 = load float, ptr %v147, align 4
  %v160 = insertelement <8 x float> %v158, float %v159, i64 4
  %v161 = load float, ptr %v148, align 4
  %v162 = insertelement <8 x float> %v160, float %v161, i64 5
  %v163 = load float, ptr %v149, align 4
  %v164 = insertelement <8 x float> %v162, float %v163, i64 6
  %v165 = load float, ptr %v150, align 4
  %v166 = insertelement <8 x float> %v164, float %v165, i64 7
  %v167 = getelementptr float, ptr %p2, <8 x i64> %v33
  %v168 = extractelement <8 x float> %v142, i64 0
  %v169 = extractelement <8 x ptr> %v167, i64 0
  store float %v168, ptr %v169, align 4
  %v170 = extractelement <8 x float> %v142, i64 1
  %v171 = extractelement <8 x ptr> %v167, i64 1
  store float %v170, ptr %v171, align 4
  %v172 = extractelement <8 x float> %v142, i64 2
  %v173 = extractelement <8 x ptr> %v167, i64 2
  store float %v172, ptr %v173, align 4
  %v174 = extractelement <8 x float> %v142, i64 3
  %v175 = extractelement <8 x ptr> %v167, i64 3
  store float %v174, ptr %v175, align 4
  %v176 = extractelement <8 x float> %v142, i64 4
  %v177 = extractelement <8 x ptr> %v167, i64 4
  store float %v176, ptr %v177, align 4
  %v178 = extractelement <8 x float> %v142, i64 5
  %v179 = extractelement <8 x ptr> %v167, i64 5
  store float %v178, ptr %v179, align 4
  %v180 = extractelement <8 x float> %v142, i64 6
  %v181 = extractelement <8 x ptr> %v167, i64 6
  store float %v180, ptr %v181, align 4
  %v182 = extractelement <8 x float> %v142, i64 7
  %v183 = extractelement <8 x ptr> %v167, i64 7
  store float %v182, ptr %v183, align 4
  %v184 = getelementptr float, ptr %p2, <8 x i64> %v48
  %v185 = extractelement <8 x float> %v166, i64 0
  %v186 = extractelement <8 x ptr> %v184, i64 0
  store float %v185, ptr %v186, align 4
  %v187 = extractelement <8 x float> %v166, i64 1
  %v188 = extractelement <8 x ptr> %v184, i64 1
  store float %v187, ptr %v188, align 4
  %v189 = extractelement <8 x float> %v166, i64 2
  %v190 = extractelement <8 x ptr> %v184, i64 2
  store float %v189, ptr %v190, align 4
  %v191 = extractelement <8 x float> %v166, i64 3
  %v192 = extractelement <8 x ptr> %v184, i64 3
  store float %v191, ptr %v192, align 4
  %v193 = extractelement <8 x float> %v166, i64 4
  %v194 = extractelement <8 x ptr> %v184, i64 4
  store float %v193, ptr %v194, align 4
  %v195 = extractelement <8 x float> %v166, i64 5
  %v196 = extractelement <8 x ptr> %v184, i64 5
  store float %v195, ptr %v196, align 4
  %v197 = extractelement <8 x float> %v166, i64 6
  %v198 = extractelement <8 x ptr> %v184, i64 6
  store float %v197, ptr %v198, align 4
  %v199 = extractelement <8 x float> %v166, i64 7
  %v200 = extractelement <8 x ptr> %v184, i64 7
  store float %v199, ptr %v200, align 4
  %v201 = add nsw i64 %v12, 16
  br label %latch202
latch202:
  %v203 = icmp slt i64 %v201, %v6
  br i1 %v203, label %loop11, label %exit9
exit9:
  br label %guard204
guard204:
  %v207 = icmp slt i64 %v6, %v1
  br i1 %v207, label %enter205, label %exit206
enter205:
  br label %loop208
loop208:
  %v209 = phi i64 [ %v6, %enter205 ], [ %v290, %latch291 ]
  %v210 = sub i64 %v1, %v209
  %v211 = insertelement <8 x i64> poison, i64 %v210, i64 0
  %v212 = shufflevector <8 x i64> %v211, <8 x i64> poison, <8 x i32> zeroinitializer
  %v213 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %v212
  %v214 = insertelement <8 x i64> poison, i64 %v209, i64 0
  %v215 = shufflevector <8 x i64> %v214, <8 x i64> poison, <8 x i32> zeroinitializer
  %v216 = add <8 x i64> %v215, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %v217 = icmp eq <8 x i64> %v18, zeroinitializer
  %v218 = select <8 x i1> %v217, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v219 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v220 = select <8 x i1> %v219, <8 x i64> splat (i64 1), <8 x i64> %v218
  %v221 = sdiv <8 x i64> %v216, %v220
  %v222 = sub <8 x i64> zeroinitializer, %v216
  %v223 = select <8 x i1> %v219, <8 x i64> %v222, <8 x i64> %v221
  %v224 = mul <8 x i64> %v223, %v218
  %v225 = sub <8 x i64> %v216, %v224
  %v226 = xor <8 x i64> %v225, %v18
  %v227 = icmp slt <8 x i64> %v226, zeroinitializer
  %v228 = icmp ne <8 x i64> %v225, zeroinitializer
  %v229 = and <8 x i1> %v227, %v228
  %v230 = add <8 x i64> %v225, %v18
  %v231 = select <8 x i1> %v229, <8 x i64> %v230, <8 x i64> %v225
  %v232 = getelementptr i64, ptr %p0, <8 x i64> %v231
  %v233 = select <8 x i1> %v213, <8 x ptr> %v232, <8 x ptr> splat (ptr @mg.zeros)
  %v234 = extractelement <8 x ptr> %v233, i64 0
  %v235 = extractelement <8 x ptr> %v233, i64 1
  %v236 = extractelement <8 x ptr> %v233, i64 2
  %v237 = extractelement <8 x ptr> %v233, i64 3
  %v238 = extractelement <8 x ptr> %v233, i64 4
  %v239 = extractelement <8 x ptr> %v233, i64 5
  %v240 = extractelement <8 x ptr> %v233, i64 6
  %v241 = extractelement <8 x ptr> %v233, i64 7
  %v242 = load i64, ptr %v234, align 8
  %v243 = insertelement <8 x i64> poison, i64 %v242, i64 0
  %v244 = load i64, ptr %v235, align 8
  %v245 = insertelement <8 x i64> %v243, i64 %v244, i64 1
  %v246 = load i64, ptr %v236, align 8
  %v247 = insertelement <8 x i64> %v245, i64 %v246, i64 2
  %v248 = load i64, ptr %v237, align 8
  %v249 = insertelement <8 x i64> %v247, i64 %v248, i64 3
  %v250 = load i64, ptr %v238, align 8
  %v251 = insertelement <8 x i64> %v249, i64 %v250, i64 4
  %v252 = load i64, ptr %v239, align 8
  %v253 = insertelement <8 x i64> %v251, i64 %v252, i64 5
  %v254 = load i64, ptr %v240, align 8
  %v255 = insertelement <8 x i64> %v253, i64 %v254, i64 6
  %v256 = load i64, ptr %v241, align 8
  %v257 = insertelement <8 x i64> %v255, i64 %v256, i64 7
  %v258 = icmp slt <8 x i64> %v257, zeroinitializer
  %v259 = select <8 x i1> %v258, <8 x i64> %v104, <8 x i64> zeroinitializer
  %v260 = add <8 x i64> %v257, %v259
  %v261 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v260, <8 x i64> %v112)
  %v262 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v261, <8 x i64> zeroinitializer)
  %v263 = getelementptr float, ptr %p1, <8 x i64> %v262
  %v264 = select <8 x i1> %v213, <8 x ptr> %v263, <8 x ptr> splat (ptr @mg.zeros)
  %v265 = extractelement <8 x ptr> %v264, i64 0
  %v266 = extractelement <8 x ptr> %v264, i64 1
  %v267 = extractelement <8 x ptr> %v264, i64 2
  %v268 = extractelement <8 x ptr> %v264, i64 3
  %v269 = extractelement <8 x ptr> %v264, i64 4
  %v270 = extractelement <8 x ptr> %v264, i64 5
  %v271 = extractelement <8 x ptr> %v264, i64 6
  %v272 = extractelement <8 x ptr> %v264, i64 7
  %v273 = load float, ptr %v265, align 4
  %v274 = insertelement <8 x float> poison, float %v273, i64 0
  %v275 = load float, ptr %v266, align 4
  %v276 = insertelement <8 x float> %v274, float %v275, i64 1
  %v277 = load float, ptr %v267, align 4
  %v278 = insertelement <8 x float> %v276, float %v277, i64 2
  %v279 = load float, ptr %v268, align 4
  %v280 = insertelement <8 x float> %v278, float %v279, i64 3
  %v281 = load float, ptr %v269, align 4
  %v282 = insertelement <8 x float> %v280, float %v281, i64 4
  %v283 = load float, ptr %v270, align 4
  %v284 = insertelement <8 x float> %v282, float %v283, i64 5
  %v285 = load float, ptr %v271, align 4
  %v286 = insertelement <8 x float> %v284, float %v285, i64 6
  %v287 = load float, ptr %v272, align 4
  %v288 = insertelement <8 x float> %v286, float %v287, i64 7
  %v289 = getelementptr float, ptr %p2, <8 x i64> %v231
  call void @llvm.masked.scatter.v8f32.v8p0(<8 x float> %v288, <8 x ptr> align 4 %v289, <8 x i1> %v213)
  %v290 = add nsw i64 %v209, 8
  br label %latch291
latch291:
  %v292 = icmp slt i64 %v290, %v1
  br i1 %v292, label %loop208, label %exit206
exit206:
  br label %leave
leave:
  ret void
}

define i32 @_unsafe_index_9a23cda8cc43b70d(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = getelementptr ptr, ptr %args, i64 3
  %v8 = load ptr, ptr %v7, align 8
  %v9 = alloca i32, align 4
  store i32 0, ptr %v9, align 4
  call void @_unsafe_index_9a23cda8cc43b70d.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v8, ptr %v9, i64 0, i64 0)
  br label %leave
leave:
  %v10 = load i32, ptr %v9, align 4
  ret i32 %v10
}

define internal void @le_ca158744855abb16.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p2, align 8
  %v2 = sub i64 %v1, 0
  %v3 = sdiv i64 %v2, 16
  %v4 = call i64 @llvm.smax.i64(i64 %v3, i64 0)
  %v5 = mul i64 %v4, 16
  %v6 = add i64 0, %v5
  br label %guard7
guard7:
  %v10 = icmp slt i64 0, %v6
  br i1 %v10, label %enter8, label %exit9
enter8:
  br label %loop11
loop11:
  %v12 = phi i64 [ 0, %enter8 ], [ %v23, %latch24 ]
  %v13 = getelementptr float, ptr %p0, i64 %v12
  %v14 = load <8 x float>, ptr %v13, align 4
  %v15 = getelementptr float, ptr %v13, i64 8
  %v16 = load <8 x float>, ptr %v15, align 4
  %v17 = fcmp ole <8 x float> %v14, splat (float 0x0000000000000000)
  %v18 = fcmp ole <8 x float> %v16, splat (float 0x0000000000000000)
  %v19 = zext <8 x i1> %v17 to <8 x i8>
  %v20 = zext <8 x i1> %v18 to <8 x i8>
  %v21 = getelementptr i8, ptr %p1, i64 %v12
  store <8 x i8> %v19, ptr %v21, align 1
  %v22 = getelementptr i8, ptr %v21, i64 8
  store <8 x i8> %v20, ptr %v22, align 1
  %v23 = add nsw i64 %v12, 16
  br label %latch24
latch24:
  %v25 = icmp slt i64 %v23, %v6
  br i1 %v25, label %loop11, label %exit9
exit9:
  br label %guard26
guard26:
  %v29 = icmp slt i64 %v6, %v1
  br i1 %v29, label %enter27, label %exit28
enter27:
  br label %loop30
loop30:
  %v31 = phi i64 [ %v6, %enter27 ], [ %v41, %latch42 ]
  %v32 = sub i64 %v1, %v31
  %v33 = insertelement <8 x i64> poison, i64 %v32, i64 0
  %v34 = shufflevector <8 x i64> %v33, <8 x i64> poison, <8 x i32> zeroinitializer
  %v35 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %v34
  %v36 = getelementptr float, ptr %p0, i64 %v31
  %v37 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %v36, <8 x i1> %v35, <8 x float> zeroinitializer)
  %v38 = fcmp ole <8 x float> %v37, splat (float 0x0000000000000000)
  %v39 = zext <8 x i1> %v38 to <8 x i8>
  %v40 = getelementptr i8, ptr %p1, i64 %v31
  call void @llvm.masked.store.v8i8.p0(<8 x i8> %v39, ptr align 1 %v40, <8 x i1> %v35)
  %v41 = add nsw i64 %v31, 8
  br label %latch42
latch42:
  %v43 = icmp slt i64 %v41, %v1
  br i1 %v43, label %loop30, label %exit28
exit28:
  br label %leave
leave:
  ret void
}

define i32 @le_ca158744855abb16(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = alloca i32, align 4
  store i32 0, ptr %v7, align 4
  call void @le_ca158744855abb16.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v7, i64 0, i64 0)
  br label %leave
leave:
  %v8 = load i32, ptr %v7, align 4
  ret i32 %v8
}

define internal void @number_560c048ef9fea9fb.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p0, align 8
  %v2 = icmp sge i64 %v1, 0
  br i1 %v2, label %fine3, label %failed4
failed4:
  %v5 = cmpxchg ptr %flag, i32 0, i32 1 acq_rel monotonic
  %v6 = extractvalue { i32, i1 } %v5, 1
  br i1 %v6, label %write7, label %leave
write7:
  %v8 = getelementptr i64, ptr %p2, i64 0
  store i64 1, ptr %v8, align 8
  %v9 = getelementptr i64, ptr %p2, i64 1
  store i64 1, ptr %v9, align 8
  br label %leave
fine3:
  %v10 = getelementptr i64, ptr %p1, i64 34
  store i64 %v1, ptr %v10, align 8
  br label %leave
leave:
  ret void
}

define i32 @number_560c048ef9fea9fb(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = alloca i32, align 4
  store i32 0, ptr %v7, align 4
  call void @number_560c048ef9fea9fb.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v7, i64 0, i64 0)
  br label %leave
leave:
  %v8 = load i32, ptr %v7, align 4
  ret i32 %v8
}

define internal void @_unsafe_index_cat_72ed525a236382ed.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %p2, ptr noalias %p3, ptr noalias %p4, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p4, align 8
  %v2 = sub i64 %v1, 0
  %v3 = sdiv i64 %v2, 16
  %v4 = call i64 @llvm.smax.i64(i64 %v3, i64 0)
  %v5 = mul i64 %v4, 16
  %v6 = add i64 0, %v5
  %v17 = insertelement <8 x i64> poison, i64 %v1, i64 0
  %v18 = shufflevector <8 x i64> %v17, <8 x i64> poison, <8 x i32> zeroinitializer
  %v49 = getelementptr i64, ptr %p4, i64 3
  %v50 = load i64, ptr %v49, align 8
  %v51 = insertelement <8 x i64> poison, i64 %v50, i64 0
  %v52 = shufflevector <8 x i64> %v51, <8 x i64> poison, <8 x i32> zeroinitializer
  %v107 = getelementptr i64, ptr %p4, i64 4
  %v108 = load i64, ptr %v107, align 8
  %v109 = insertelement <8 x i64> poison, i64 %v108, i64 0
  %v110 = shufflevector <8 x i64> %v109, <8 x i64> poison, <8 x i32> zeroinitializer
  %v169 = getelementptr i64, ptr %p4, i64 2
  %v170 = load i64, ptr %v169, align 8
  %v171 = insertelement <8 x i64> poison, i64 %v170, i64 0
  %v172 = shufflevector <8 x i64> %v171, <8 x i64> poison, <8 x i32> zeroinitializer
  %v177 = getelementptr i64, ptr %p4, i64 1
  %v178 = load i64, ptr %v177, align 8
  %v179 = insertelement <8 x i64> poison, i64 %v178, i64 0
  %v180 = shufflevector <8 x i64> %v179, <8 x i64> poison, <8 x i32> zeroinitializer
  br label %guard7
guard7:
  %v10 = icmp slt i64 0, %v6
  br i1 %v10, label %enter8, label %exit9
enter8:
  br label %loop11
loop11:
  %v12 = phi i64 [ 0, %enter8 ], [ %v271, %latch272 ]
  %v13 = insertelement <8 x i64> poison, i64 %v12, i64 0
  %v14 = shufflevector <8 x i64> %v13, <8 x i64> poison, <8 x i32> zeroinitializer
  %v15 = add <8 x i64> %v14, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %v16 = add <8 x i64> %v14, <i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %v19 = icmp eq <8 x i64> %v18, zeroinitializer
  %v20 = select <8 x i1> %v19, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v21 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v22 = select <8 x i1> %v21, <8 x i64> splat (i64 1), <8 x i64> %v20
  %v23 = sdiv <8 x i64> %v15, %v22
  %v24 = sub <8 x i64> zeroinitializer, %v15
  %v25 = select <8 x i1> %v21, <8 x i64> %v24, <8 x i64> %v23
  %v26 = mul <8 x i64> %v25, %v20
  %v27 = sub <8 x i64> %v15, %v26
  %v28 = xor <8 x i64> %v27, %v18
  %v29 = icmp slt <8 x i64> %v28, zeroinitializer
  %v30 = icmp ne <8 x i64> %v27, zeroinitializer
  %v31 = and <8 x i1> %v29, %v30
  %v32 = add <8 x i64> %v27, %v18
  %v33 = select <8 x i1> %v31, <8 x i64> %v32, <8 x i64> %v27
  %v34 = icmp eq <8 x i64> %v18, zeroinitializer
  %v35 = select <8 x i1> %v34, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v36 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v37 = select <8 x i1> %v36, <8 x i64> splat (i64 1), <8 x i64> %v35
  %v38 = sdiv <8 x i64> %v16, %v37
  %v39 = sub <8 x i64> zeroinitializer, %v16
  %v40 = select <8 x i1> %v36, <8 x i64> %v39, <8 x i64> %v38
  %v41 = mul <8 x i64> %v40, %v35
  %v42 = sub <8 x i64> %v16, %v41
  %v43 = xor <8 x i64> %v42, %v18
  %v44 = icmp slt <8 x i64> %v43, zeroinitializer
  %v45 = icmp ne <8 x i64> %v42, zeroinitializer
  %v46 = and <8 x i1> %v44, %v45
  %v47 = add <8 x i64> %v42, %v18
  %v48 = select <8 x i1> %v46, <8 x i64> %v47, <8 x i64> %v42
  %v53 = icmp slt <8 x i64> %v33, %v52
  %v54 = icmp slt <8 x i64> %v48, %v52
  %v55 = getelementptr float, ptr %p2, <8 x i64> %v33
  %v56 = getelementptr float, ptr %p2, <8 x i64> %v48
  %v57 = select <8 x i1> %v53, <8 x ptr> %v55, <8 x ptr> splat (ptr @mg.zeros)
  %v58 = extractelement <8 x ptr> %v57, i64 0
  %v59 = extractelement <8 x ptr> %v57, i64 1
  %v60 = extractelement <8 x ptr> %v57, i64 2
  %v61 = extractelement <8 x ptr> %v57, i64 3
  %v62 = extractelement <8 x ptr> %v57, i64 4
  %v63 = extractelement <8 x ptr> %v57, i64 5
  %v64 = extractelement <8 x ptr> %v57, i64 6
  %v65 = extractelement <8 x ptr> %v57, i64 7
  %v66 = load float, ptr %v58, align 4
  %v67 = insertelement <8 x float> poison, float %v66, i64 0
  %v68 = load float, ptr %v59, align 4
  %v69 = insertelement <8 x float> %v67, float %v68, i64 1
  %v70 = load float, ptr %v60, align 4
  %v71 = insertelement <8 x float> %v69, float %v70, i64 2
  %v72 = load float, ptr %v61, align 4
  %v73 = insertelement <8 x float> %v71, float %v72, i64 3
  %v74 = load float, ptr %v62, align 4
  %v75 = insertelement <8 x float> %v73, float %v74, i64 4
  %v76 = load float, ptr %v63, align 4
  %v77 = insertelement <8 x float> %v75, float %v76, i64 5
  %v78 = load float, ptr %v64, align 4
  %v79 = insertelement <8 x float> %v77, float %v78, i64 6
  %v80 = load float, ptr %v65, align 4
  %v81 = insertelement <8 x float> %v79, float %v80, i64 7
  %v82 = select <8 x i1> %v54, <8 x ptr> %v56, <8 x ptr> splat (ptr @mg.zeros)
  %v83 = extractelement <8 x ptr> %v82, i64 0
  %v84 = extractelement <8 x ptr> %v82, i64 1
  %v85 = extractelement <8 x ptr> %v82, i64 2
  %v86 = extractelement <8 x ptr> %v82, i64 3
  %v87 = extractelement <8 x ptr> %v82, i64 4
  %v88 = extractelement <8 x ptr> %v82, i64 5
  %v89 = extractelement <8 x ptr> %v82, i64 6
  %v90 = extractelement <8 x ptr> %v82, i64 7
  %v91 = load float, ptr %v83, align 4
  %v92 = insertelement <8 x float> poison, float %v91, i64 0
  %v93 = load float, ptr %v84, align 4
  %v94 = insertelement <8 x float> %v92, float %v93, i64 1
  %v95 = load float, ptr %v85, align 4
  %v96 = insertelement <8 x float> %v94, float %v95, i64 2
  %v97 = load float, ptr %v86, align 4
  %v98 = insertelement <8 x float> %v96, float %v97, i64 3
  %v99 = load float, ptr %v87, align 4
  %v100 = insertelement <8 x float> %v98, float %v99, i64 4
  %v101 = load float, ptr %v88, align 4
  %v102 = insertelement <8 x float> %v100, float %v101, i64 5
  %v103 = load float, ptr %v89, align 4
  %v104 = insertelement <8 x float> %v102, float %v103, i64 6
  %v105 = load float, ptr %v90, align 4
  %v106 = insertelement <8 x float> %v104, float %v105, i64 7
  %v111 = add <8 x i64> %v33, %v110
  %v112 = add <8 x i64> %v48, %v110
  %v113 = icmp sge <8 x i64> %v33, %v52
  %v114 = icmp sge <8 x i64> %v48, %v52
  %v115 = getelementptr i64, ptr %p0, <8 x i64> %v111
  %v116 = getelementptr i64, ptr %p0, <8 x i64> %v112
  %v117 = select <8 x i1> %v113, <8 x ptr> %v115, <8 x ptr> splat (ptr @mg.zeros)
  %v118 = extractelement <8 x ptr> %v117, i64 0
  %v119 = extractelement <8 x ptr> %v117, i64 1
  %v120 = extractelement <8 x ptr> %v117, i64 2
  %v121 = extractelement <8 x ptr> %v117, i64 3
  %v122 = extractelement <8 x ptr> %v117, i64 4
  %v123 = extractelement <8 x ptr> %v117, i64 5
  %v124 = extractelement <8 x ptr> %v117, i64 6
  %v125 = extractelement <8 x ptr> %v117, i64 7
  %v126 = load i64, ptr %v118, align 8
  %v127 = insertelement <8 x i64> poison, i64 %v126, i64 0
  %v128 = load i64, ptr %v119, align 8
  %v129 = insertelement <8 x i64> %v127, i64 %v128, i64 1
  %v130 = load i64, ptr %v120, align 8
  %v131 = insertelement <8 x i64> %v129, i64 %v130, i64 2
  %v132 = load i64, ptr %v121, align 8
  %v133 = insertelement <8 x i64> %v131, i64 %v132, i64 3
  %v134 = load i64, ptr %v122, align 8
  %v135 = insertelement <8 x i64> %v133, i64 %v134, i64 4
  %v136 = load i64, ptr %v123, align 8
  %v137 = insertelement <8 x i64> %v135, i64 %v136, i64 5
  %v138 = load i64, ptr %v124, align 8
  %v139 = insertelement <8 x i64> %v137, i64 %v138, i64 6
  %v140 = load i64, ptr %v125, align 8
  %v141 = insertelement <8 x i64> %v139, i64 %v140, i64 7
  %v142 = select <8 x i1> %v114, <8 x ptr> %v116, <8 x ptr> splat (ptr @mg.zeros)
  %v143 = extractelement <8 x ptr> %v142, i64 0
  %v144 = extractelement <8 x ptr> %v142, i64 1
  %v145 = extractelement <8 x ptr> %v142, i64 2
  %v146 = extractelement <8 x ptr> %v142, i64 3
  %v147 = extractelement <8 x ptr> %v142, i64 4
  %v148 = extractelement <8 x ptr> %v142, i64 5
  %v149 = extractelement <8 x ptr> %v142, i64 6
  %v150 = extractelement <8 x ptr> %v142, i64 7
  %v151 = load i64, ptr %v143, align 8
  %v152 = insertelement <8 x i64> poison, i64 %v151, i64 0
  %v153 = load i64, ptr %v144, align 8
  %v154 = insertelement <8 x i64> %v152, i64 %v153, i64 1
  %v155 = load i64, ptr %v145, align 8
  %v156 = insertelement <8 x i64> %v154, i64 %v155, i64 2
  %v157 = load i64, ptr %v146, align 8
  %v158 = insertelement <8 x i64> %v156, i64 %v157, i64 3
  %v159 = load i64, ptr %v147, align 8
  %v160 = insertelement <8 x i64> %v158, i64 %v159, i64 4
  %v161 = load i64, ptr %v148, align 8
  %v162 = insertelement <8 x i64> %v160, i64 %v161, i64 5
  %v163 = load i64, ptr %v149, align 8
  %v164 = insertelement <8 x i64> %v162, i64 %v163, i64 6
  %v165 = load i64, ptr %v150, align 8
  %v166 = insertelement <8 x i64> %v164, i64 %v165, i64 7
  %v167 = icmp slt <8 x i64> %v141, zeroinitializer
  %v168 = icmp slt <8 x i64> %v166, zeroinitializer
  %v173 = select <8 x i1> %v167, <8 x i64> %v172, <8 x i64> zeroinitializer
  %v174 = select <8 x i1> %v168, <8 x i64> %v172, <8 x i64> zeroinitializer
  %v175 = add <8 x i64> %v141, %v173
  %v176 = add <8 x i64> %v166, %v174
  %v181 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v175, <8 x i64> %v180)
  %v182 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v176, <8 x i64> %v180)
  %v183 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v181, <8 x i64> zeroinitializer)
  %v184 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v182, <8 x i64> zeroinitializer)
  %v185 = getelementptr float, ptr %p1, <8 x i64> %v183
  %v186 = getelementptr float, ptr %p1, <8 x i64> %v184
  %v187 = extractelement <8 x ptr> %v185, i64 0
  %v188 = extractelement <8 x ptr> %v185, i64 1
  %v189 = extractelement <8 x ptr> %v185, i64 2
  %v190 = extractelement <8 x ptr> %v185, i64 3
  %v191 = extractelement <8 x ptr> %v185, i64 4
  %v192 = extractelement <8 x ptr> %v185, i64 5
  %v193 = extractelement <8 x ptr> %v185, i64 6
  %v194 = extractelement <8 x ptr> %v185, i64 7
  %v195 = load float, ptr %v187, align 4
  %v196 = insertelement <8 x float> poison, float %v195, i64 0
  %v197 = load float, ptr %v188, align 4
  %v198 = insertelement <8 x float> %v196, float %v197, i64 1
  %v199 = load float, ptr %v189, align 4
  %v200 = insertelement <8 x float> %v198, float %v199, i64 2
  %v201 = load float, ptr %v190, align 4
  %v202 = insertelement <8 x float> %v200, float %v201, i64 3
  %v203 = load float, ptr %v191, align 4
  %v204 = insertelement <8 x float> %v202, float %v203, i64 4
  %v205 = load float, ptr %v192, align 4
  %v206 = insertelement <8 x float> %v204, float %v205, i64 5
  %v207 = load float, ptr %v193, align 4
  %v208 = insertelement <8 x float> %v206, float %v207, i64 6
  %v209 = load float, ptr %v194, align 4
  %v210 = insertelement <8 x float> %v208, float %v209, i64 7
  %v211 = extractelement <8 x ptr> %v186, i64 0
  %v212 = extractelement <8 x ptr> %v186, i64 1
  %v213 = extractelement <8 x ptr> %v186, i64 2
  %v214 = extractelement <8 x ptr> %v186, i64 3
  %v215 = extractelement <8 x ptr> %v186, i64 4
  %v216 = extractelement <8 x ptr> %v186, i64 5
  %v217 = extractelement <8 x ptr> %v186, i64 6
  %v218 = extractelement <8 x ptr> %v186, i64 7
  %v219 = load float, ptr %v211, align 4
  %v220 = insertelement <8 x float> poison, float %v219, i64 0
  %v221 = load float, ptr %v212, align 4
  %v222 = insertelement <8 x float> %v220, float %v221, i64 1
  %v223 = load float, ptr %v213, align 4
  %v224 = insertelement <8 x float> %v222, float %v223, i64 2
  %v225 = load float, ptr %v214, align 4
  %v226 = insertelement <8 x float> %v224, float %v225, i64 3
  %v227 = load float, ptr %v215, align 4
  %v228 = insertelement <8 x float> %v226, float %v227, i64 4
  %v229 = load float, ptr %v216, align 4
  %v230 = insertelement <8 x float> %v228, float %v229, i64 5
  %v231 = load float, ptr %v217, align 4
  %v232 = insertelement <8 x float> %v230, float %v231, i64 6
  %v233 = load float, ptr %v218, align 4
  %v234 = insertelement <8 x float> %v232, float %v233, i64 7
  %v235 = select <8 x i1> %v53, <8 x float> %v81, <8 x float> %v210
  %v236 = select <8 x i1> %v54, <8 x float> %v106, <8 x float> %v234
  %v237 = getelementptr float, ptr %p3, <8 x i64> %v33
  %v238 = extractelement <8 x float> %v235, i64 0
  %v239 = extractelement <8 x ptr> %v237, i64 0
  store float %v238, ptr %v239, align 4
  %v240 = extractelement <8 x float> %v235, i64 1
  %v241 = extractelement <8 x ptr> %v237, i64 1
  store float %v240, ptr %v241, align 4
  %v242 = extractelement <8 x float> %v235, i64 2
  %v243 = extractelement <8 x ptr> %v237, i64 2
  store float %v242, ptr %v243, align 4
  %v244 = extractelement <8 x float> %v235, i64 3
  %v245 = extractelement <8 x ptr> %v237, i64 3
  store float %v244, ptr %v245, align 4
  %v246 = extractelement <8 x float> %v235, i64 4
  %v247 = extractelement <8 x ptr> %v237, i64 4
  store float %v246, ptr %v247, align 4
  %v248 = extractelement <8 x float> %v235, i64 5
  %v249 = extractelement <8 x ptr> %v237, i64 5
  store float %v248, ptr %v249, align 4
  %v250 = extractelement <8 x float> %v235, i64 6
  %v251 = extractelement <8 x ptr> %v237, i64 6
  store float %v250, ptr %v251, align 4
  %v252 = extractelement <8 x float> %v235, i64 7
  %v253 = extractelement <8 x ptr> %v237, i64 7
  store float %v252, ptr %v253, align 4
  %v254 = getelementptr float, ptr %p3, <8 x i64> %v48
  %v255 = extractelement <8 x float> %v236, i64 0
  %v256 = extractelement <8 x ptr> %v254, i64 0
  store float %v255, ptr %v256, align 4
  %v257 = extractelement <8 x float> %v236, i64 1
  %v258 = extractelement <8 x ptr> %v254, i64 1
  store float %v257, ptr %v258, align 4
  %v259 = extractelement <8 x float> %v236, i64 2
  %v260 = extractelement <8 x ptr> %v254, i64 2
  store float %v259, ptr %v260, align 4
  %v261 = extractelement <8 x float> %v236, i64 3
  %v262 = extractelement <8 x ptr> %v254, i64 3
  store float %v261, ptr %v262, align 4
  %v263 = extractelement <8 x float> %v236, i64 4
  %v264 = extractelement <8 x ptr> %v254, i64 4
  store float %v263, ptr %v264, align 4
  %v265 = extractelement <8 x float> %v236, i64 5
  %v266 = extractelement <8 x ptr> %v254, i64 5
  store float %v265, ptr %v266, align 4
  %v267 = extractelement <8 x float> %v236, i64 6
  %v268 = extractelement <8 x ptr> %v254, i64 6
  store float %v267, ptr %v268, align 4
  %v269 = extractelement <8 x float> %v236, i64 7
  %v270 = extractelement <8 x ptr> %v254, i64 7
  store float %v269, ptr %v270, align 4
  %v271 = add nsw i64 %v12, 16
  br label %latch272
latch272:
  %v273 = icmp slt i64 %v271, %v6
  br i1 %v273, label %loop11, label %exit9
exit9:
  br label %guard274
guard274:
  %v277 = icmp slt i64 %v6, %v1
  br i1 %v277, label %enter275, label %exit276
enter275:
  br label %loop278
loop278:
  %v279 = phi i64 [ %v6, %enter275 ], [ %v392, %latch393 ]
  %v280 = sub i64 %v1, %v279
  %v281 = insertelement <8 x i64> poison, i64 %v280, i64 0
  %v282 = shufflevector <8 x i64> %v281, <8 x i64> poison, <8 x i32> zeroinitializer
  %v283 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %v282
  %v284 = insertelement <8 x i64> poison, i64 %v279, i64 0
  %v285 = shufflevector <8 x i64> %v284, <8 x i64> poison, <8 x i32> zeroinitializer
  %v286 = add <8 x i64> %v285, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %v287 = icmp eq <8 x i64> %v18, zeroinitializer
  %v288 = select <8 x i1> %v287, <8 x i64> splat (i64 1), <8 x i64> %v18
  %v289 = icmp eq <8 x i64> %v18, splat (i64 -1)
  %v290 = select <8 x i1> %v289, <8 x i64> splat (i64 1), <8 x i64> %v288
  %v291 = sdiv <8 x i64> %v286, %v290
  %v292 = sub <8 x i64> zeroinitializer, %v286
  %v293 = select <8 x i1> %v289, <8 x i64> %v292, <8 x i64> %v291
  %v294 = mul <8 x i64> %v293, %v288
  %v295 = sub <8 x i64> %v286, %v294
  %v296 = xor <8 x i64> %v295, %v18
  %v297 = icmp slt <8 x i64> %v296, zeroinitializer
  %v298 = icmp ne <8 x i64> %v295, zeroinitializer
  %v299 = and <8 x i1> %v297, %v298
  %v300 = add <8 x i64> %v295, %v18
  %v301 = select <8 x i1> %v299, <8 x i64> %v300, <8 x i64> %v295
  %v302 = icmp slt <8 x i64> %v301, %v52
  %v303 = and <8 x i1> %v302, %v283
  %v304 = getelementptr float, ptr %p2, <8 x i64> %v301
  %v305 = select <8 x i1> %v303, <8 x ptr> %v304, <8 x ptr> splat (ptr @mg.zeros)
  %v306 = extractelement <8 x ptr> %v305, i64 0
  %v307 = extractelement <8 x ptr> %v305, i64 1
  %v308 = extractelement <8 x ptr> %v305, i64 2
  %v309 = extractelement <8 x ptr> %v305, i64 3
  %v310 = extractelement <8 x ptr> %v305, i64 4
  %v311 = extractelement <8 x ptr> %v305, i64 5
  %v312 = extractelement <8 x ptr> %v305, i64 6
  %v313 = extractelement <8 x ptr> %v305, i64 7
  %v314 = load float, ptr %v306, align 4
  %v315 = insertelement <8 x float> poison, float %v314, i64 0
  %v316 = load float, ptr %v307, align 4
  %v317 = insertelement <8 x float> %v315, float %v316, i64 1
  %v318 = load float, ptr %v308, align 4
  %v319 = insertelement <8 x float> %v317, float %v318, i64 2
  %v320 = load float, ptr %v309, align 4
  %v321 = insertelement <8 x float> %v319, float %v320, i64 3
  %v322 = load float, ptr %v310, align 4
  %v323 = insertelement <8 x float> %v321, float %v322, i64 4
  %v324 = load float, ptr %v311, align 4
  %v325 = insertelement <8 x float> %v323, float %v324, i64 5
  %v326 = load float, ptr %v312, align 4
  %v327 = insertelement <8 x float> %v325, float %v326, i64 6
  %v328 = load float, ptr %v313, align 4
  %v329 = insertelement <8 x float> %v327, float %v328, i64 7
  %v330 = add <8 x i64> %v301, %v110
  %v331 = icmp sge <8 x i64> %v301, %v52
  %v332 = and <8 x i1> %v331, %v283
  %v333 = getelementptr i64, ptr %p0, <8 x i64> %v330
  %v334 = select <8 x i1> %v332, <8 x ptr> %v333, <8 x ptr> splat (ptr @mg.zeros)
  %v335 = extractelement <8 x ptr> %v334, i64 0
  %v336 = extractelement <8 x ptr> %v334, i64 1
  %v337 = extractelement <8 x ptr> %v334, i64 2
  %v338 = extractelement <8 x ptr> %v334, i64 3
  %v339 = extractelement <8 x ptr> %v334, i64 4
  %v340 = extractelement <8 x ptr> %v334, i64 5
  %v341 = extractelement <8 x ptr> %v334, i64 6
  %v342 = extractelement <8 x ptr> %v334, i64 7
  %v343 = load i64, ptr %v335, align 8
  %v344 = insertelement <8 x i64> poison, i64 %v343, i64 0
  %v345 = load i64, ptr %v336, align 8
  %v346 = insertelement <8 x i64> %v344, i64 %v345, i64 1
  %v347 = load i64, ptr %v337, align 8
  %v348 = insertelement <8 x i64> %v346, i64 %v347, i64 2
  %v349 = load i64, ptr %v338, align 8
  %v350 = insertelement <8 x i64> %v348, i64 %v349, i64 3
  %v351 = load i64, ptr %v339, align 8
  %v352 = insertelement <8 x i64> %v350, i64 %v351, i64 4
  %v353 = load i64, ptr %v340, align 8
  %v354 = insertelement <8 x i64> %v352, i64 %v353, i64 5
  %v355 = load i64, ptr %v341, align 8
  %v356 = insertelement <8 x i64> %v354, i64 %v355, i64 6
  %v357 = load i64, ptr %v342, align 8
  %v358 = insertelement <8 x i64> %v356, i64 %v357, i64 7
  %v359 = icmp slt <8 x i64> %v358, zeroinitializer
  %v360 = select <8 x i1> %v359, <8 x i64> %v172, <8 x i64> zeroinitializer
  %v361 = add <8 x i64> %v358, %v360
  %v362 = call <8 x i64> @llvm.smin.v8i64(<8 x i64> %v361, <8 x i64> %v180)
  %v363 = call <8 x i64> @llvm.smax.v8i64(<8 x i64> %v362, <8 x i64> zeroinitializer)
  %v364 = getelementptr float, ptr %p1, <8 x i64> %v363
  %v365 = select <8 x i1> %v283, <8 x ptr> %v364, <8 x ptr> splat (ptr @mg.zeros)
  %v366 = extractelement <8 x ptr> %v365, i64 0
  %v367 = extractelement <8 x ptr> %v365, i64 1
  %v368 = extractelement <8 x ptr> %v365, i64 2
  %v369 = extractelement <8 x ptr> %v365, i64 3
  %v370 = extractelement <8 x ptr> %v365, i64 4
  %v371 = extractelement <8 x ptr> %v365, i64 5
  %v372 = extractelement <8 x ptr> %v365, i64 6
  %v373 = extractelement <8 x ptr> %v365, i64 7
  %v374 = load float, ptr %v366, align 4
  %v375 = insertelement <8 x float> poison, float %v374, i64 0
  %v376 = load float, ptr %v367, align 4
  %v377 = insertelement <8 x float> %v375, float %v376, i64 1
  %v378 = load float, ptr %v368, align 4
  %v379 = insertelement <8 x float> %v377, float %v378, i64 2
  %v380 = load float, ptr %v369, align 4
  %v381 = insertelement <8 x float> %v379, float %v380, i64 3
  %v382 = load float, ptr %v370, align 4
  %v383 = insertelement <8 x float> %v381, float %v382, i64 4
  %v384 = load float, ptr %v371, align 4
  %v385 = insertelement <8 x float> %v383, float %v384, i64 5
  %v386 = load float, ptr %v372, align 4
  %v387 = insertelement <8 x float> %v385, float %v386, i64 6
  %v388 = load float, ptr %v373, align 4
  %v389 = insertelement <8 x float> %v387, float %v388, i64 7
  %v390 = select <8 x i1> %v302, <8 x float> %v329, <8 x float> %v389
  %v391 = getelementptr float, ptr %p3, <8 x i64> %v301
  call void @llvm.masked.scatter.v8f32.v8p0(<8 x float> %v390, <8 x ptr> align 4 %v391, <8 x i1> %v283)
  %v392 = add nsw i64 %v279, 8
  br label %latch393
latch393:
  %v394 = icmp slt i64 %v392, %v1
  br i1 %v394, label %loop278, label %exit276
exit276:
  br label %leave
leave:
  ret void
}

define i32 @_unsafe_index_cat_72ed525a236382ed(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = getelementptr ptr, ptr %args, i64 2
  %v6 = load ptr, ptr %v5, align 8
  %v7 = getelementptr ptr, ptr %args, i64 3
  %v8 = load ptr, ptr %v7, align 8
  %v9 = getelementptr ptr, ptr %args, i64 4
  %v10 = load ptr, ptr %v9, align 8
  %v11 = alloca i32, align 4
  store i32 0, ptr %v11, align 4
  call void @_unsafe_index_cat_72ed525a236382ed.0.range(ptr %v2, ptr %v4, ptr %v6, ptr %v8, ptr %v10, ptr %v11, i64 0, i64 0)
  br label %leave
leave:
  %v12 = load i32, ptr %v11, align 4
  ret i32 %v12
}

define internal void @full_clone_8d05f45f4d447d3a.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p1, align 8
  store i64 %v1, ptr %p0, align 8
  br label %leave
leave:
  ret void
}

define i32 @full_clone_8d05f45f4d447d3a(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = alloca i32, align 4
  store i32 0, ptr %v5, align 4
  call void @full_clone_8d05f45f4d447d3a.0.range(ptr %v2, ptr %v4, ptr %v5, i64 0, i64 0)
  br label %leave
leave:
  %v6 = load i32, ptr %v5, align 4
  ret i32 %v6
}

define internal void @full_clone_6c87a435804594c6.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = load i64, ptr %p1, align 8
  store i64 %v1, ptr %p0, align 8
  br label %leave
leave:
  ret void
}

define i32 @full_clone_6c87a435804594c6(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = alloca i32, align 4
  store i32 0, ptr %v5, align 4
  call void @full_clone_6c87a435804594c6.0.range(ptr %v2, ptr %v4, ptr %v5, i64 0, i64 0)
  br label %leave
leave:
  %v6 = load i32, ptr %v5, align 4
  ret i32 %v6
}

define internal void @sizes_8d99b2087c8256c1.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = getelementptr i64, ptr %p0, i64 29
  %v2 = load i64, ptr %v1, align 8
  %v3 = getelementptr i64, ptr %p0, i64 44
  %v4 = load i64, ptr %v3, align 8
  %v5 = icmp sle i64 %v2, %v4
  br i1 %v5, label %fine6, label %failed7
failed7:
  %v8 = cmpxchg ptr %flag, i32 0, i32 1 acq_rel monotonic
  %v9 = extractvalue { i32, i1 } %v8, 1
  br i1 %v9, label %write10, label %leave
write10:
  %v11 = getelementptr i64, ptr %p1, i64 0
  store i64 1, ptr %v11, align 8
  %v12 = getelementptr i64, ptr %p1, i64 1
  store i64 1, ptr %v12, align 8
  br label %leave
fine6:
  %v13 = getelementptr i64, ptr %p0, i64 30
  store i64 %v2, ptr %v13, align 8
  br label %leave
leave:
  ret void
}

define i32 @sizes_8d99b2087c8256c1(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = alloca i32, align 4
  store i32 0, ptr %v5, align 4
  call void @sizes_8d99b2087c8256c1.0.range(ptr %v2, ptr %v4, ptr %v5, i64 0, i64 0)
  br label %leave
leave:
  %v6 = load i32, ptr %v5, align 4
  ret i32 %v6
}

define internal void @sizes_aea7e532549b8d9e.0.range(ptr noalias %p0, ptr noalias %p1, ptr noalias %flag, i64 %lo, i64 %hi) nounwind {
  %v1 = getelementptr i64, ptr %p0, i64 29
  %v2 = load i64, ptr %v1, align 8
  %v3 = getelementptr i64, ptr %p0, i64 45
  %v4 = load i64, ptr %v3, align 8
  %v5 = icmp sle i64 %v2, %v4
  br i1 %v5, label %fine6, label %failed7
failed7:
  %v8 = cmpxchg ptr %flag, i32 0, i32 1 acq_rel monotonic
  %v9 = extractvalue { i32, i1 } %v8, 1
  br i1 %v9, label %write10, label %leave
write10:
  %v11 = getelementptr i64, ptr %p1, i64 0
  store i64 1, ptr %v11, align 8
  %v12 = getelementptr i64, ptr %p1, i64 1
  store i64 1, ptr %v12, align 8
  br label %leave
fine6:
  %v13 = getelementptr i64, ptr %p0, i64 34
  %v14 = load i64, ptr %v13, align 8
  %v15 = getelementptr i64, ptr %p0, i64 46
  %v16 = load i64, ptr %v15, align 8
  %v17 = icmp sle i64 %v14, %v16
  br i1 %v17, label %fine18, label %failed19
failed19:
  %v20 = cmpxchg ptr %flag, i32 0, i32 1 acq_rel monotonic
  %v21 = extractvalue { i32, i1 } %v20, 1
  br i1 %v21, label %write22, label %leave
write22:
  %v23 = getelementptr i64, ptr %p1, i64 0
  store i64 1, ptr %v23, align 8
  %v24 = getelementptr i64, ptr %p1, i64 1
  store i64 1, ptr %v24, align 8
  br label %leave
fine18:
  %v25 = mul i64 1, %v2
  %v26 = mul i64 1, %v14
  %v27 = add i64 %v25, %v26
  %v28 = add i64 %v27, 0
  %v29 = getelementptr i64, ptr %p0, i64 35
  store i64 %v28, ptr %v29, align 8
  %v30 = getelementptr i64, ptr %p0, i64 29
  %v31 = load i64, ptr %v30, align 8
  %v32 = getelementptr i64, ptr %p0, i64 38
  store i64 %v31, ptr %v32, align 8
  %v33 = getelementptr i64, ptr %p0, i64 29
  %v34 = load i64, ptr %v33, align 8
  %v35 = mul i64 -1, %v34
  %v36 = add i64 %v35, 0
  %v37 = getelementptr i64, ptr %p0, i64 39
  store i64 %v36, ptr %v37, align 8
  %v38 = getelementptr i64, ptr %p0, i64 29
  %v39 = load i64, ptr %v38, align 8
  %v40 = getelementptr i64, ptr %p0, i64 40
  store i64 %v39, ptr %v40, align 8
  %v41 = getelementptr i64, ptr %p0, i64 34
  %v42 = load i64, ptr %v41, align 8
  %v43 = getelementptr i64, ptr %p0, i64 41
  store i64 %v42, ptr %v43, align 8
  br label %leave
leave:
  ret void
}

define i32 @sizes_aea7e532549b8d9e(ptr %args) nounwind {
  %v1 = getelementptr ptr, ptr %args, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v3 = getelementptr ptr, ptr %args, i64 1
  %v4 = load ptr, ptr %v3, align 8
  %v5 = alloca i32, align 4
  store i32 0, ptr %v5, align 4
  call void @sizes_aea7e532549b8d9e.0.range(ptr %v2, ptr %v4, ptr %v5, i64 0, i64 0)
  br label %leave
leave:
  %v6 = load i32, ptr %v5, align 4
  ret i32 %v6
}

