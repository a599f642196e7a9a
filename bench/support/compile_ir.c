/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of many megabytes for bench/fdo: LLVM, linked statically, optimizes and compiles
 * modules of bitcode. */
#include <stdio.h>
#include <stdlib.h>

#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

static void must(int ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "compile_ir: %s: %s\n", what, why ? why : "failed");
	exit(1);
}

static LLVMModuleRef read_module(LLVMContextRef context, const char *path)
{
	LLVMMemoryBufferRef bytes;
	LLVMModuleRef module;
	char *why = NULL;

	must(!LLVMCreateMemoryBufferWithContentsOfFile(path, &bytes, &why), path, why);
	must(!LLVMParseBitcodeInContext2(context, bytes, &module), path, "no bitcode");
	LLVMDisposeMemoryBuffer(bytes);
	return module;
}

static LLVMTargetMachineRef machine_of(LLVMModuleRef module)
{
	LLVMTargetRef target;
	char *why = NULL;

	must(!LLVMGetTargetFromTriple(LLVMGetTarget(module), &target, &why), LLVMGetTarget(module),
	     why);
	return LLVMCreateTargetMachine(target, LLVMGetTarget(module), "x86-64", "",
				       LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
}

/* The length of the object that @path becomes. */
static size_t compile(const char *path)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = read_module(context, path);
	LLVMTargetMachineRef machine = machine_of(module);
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMMemoryBufferRef object;
	char *why = NULL;
	size_t len;

	must(!LLVMRunPasses(module, "default<O2>", machine, options), path, "its passes failed");
	must(!LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &why, &object),
	     path, why);
	len = LLVMGetBufferSize(object);
	LLVMDisposeMemoryBuffer(object);
	LLVMDisposePassBuilderOptions(options);
	LLVMDisposeTargetMachine(machine);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
	return len;
}

int main(int argc, char **argv)
{
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	for (int i = 1; i < argc; i++)
		printf("%zu\n", compile(argv[i]));
	return 0;
}
