/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's types and layouts that DCPI's BPF programs need: types of its helpers, the register
 * layouts that programs receive (a part of its interface, fixed for each architecture), and the few
 * fields of its own structs, whose places are found when a program is loaded (CO-RE).
 */
#ifndef DCPI_BPF_KERNEL_H
#define DCPI_BPF_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names that bpf_helpers.h leans on. */
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* Numbers of the interface, by bpf(2). */
enum {
	BPF_NOEXIST = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

/* A place in a ring, as the interface has it. */
struct bpf_dynptr {
	uint64_t opaque[2];
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* ---- registers ------------------------------------------------------------------------------- */

#if defined(DCPI_BPF_x86_64)
struct kernel_user_regs {
	uint64_t general[16];
	uint64_t ip, cs, flags, sp, ss;
};
#define KERNEL_MODE_WORD   cs
#define KERNEL_IS_USER(cs) (((cs)&3) != 0)
#define KERNEL_CS_USER_64  0x33
/* Documentation/arch/x86/x86_64/mm.rst */
#define KERNEL_IMAGE_START 0xffffffff80000000ull
#define KERNEL_IMAGE_END   0xffffffffff000000ull
#elif defined(DCPI_BPF_aarch64)
struct kernel_user_regs {
	uint64_t general[31];
	uint64_t sp, ip, pstate;
};
#define KERNEL_MODE_WORD       pstate
#define KERNEL_IS_USER(pstate) (((pstate)&15) == 0)
#define KERNEL_PSTATE_32       16
/* Documentation/arch/arm64/memory.rst, addresses of 48 bits */
#define KERNEL_DIRECT_START    0xffff000000000000ull
#define KERNEL_DIRECT_END      0xffff800000000000ull
#else
#error "no register layout for this architecture"
#endif

enum { KERNEL_STACK_LEN = 16384 };

struct bpf_perf_event_data {
	struct kernel_user_regs regs;
	uint64_t sample_period, addr;
};

/* ---- structs, by CO-RE ----------------------------------------------------------------------- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct thread_struct {
#if defined(DCPI_BPF_x86_64)
	uint64_t fsbase;
#define KERNEL_THREAD_TLS fsbase
#else
	struct {
		uint64_t tp_value;
	} uw;
#define KERNEL_THREAD_TLS uw.tp_value
#endif
};

/* The mappings of a process, by address. */
struct maple_tree {
	void *ma_root;
};

struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_metadata {
	unsigned char end;
};

struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
	struct maple_metadata meta;
};

/* Stands for any four bytes: a cast wants a struct that the kernel knows. */
struct seqcount {
	unsigned int sequence;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct mm_struct {
	struct maple_tree mm_mt;
	struct seqcount mm_lock_seq; /* Linux 6.13; counts the writers of mappings */
	mm_context_t context;
};

struct mm_struct___int {
	int mm_lock_seq; /* Linux 6.4 */
};

/* Stands for any eight bytes. */
struct timespec64 {
	int64_t tv_sec;
	long tv_nsec;
};

struct super_block {
	uint32_t s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	int64_t i_size;
};

/* Linux 6.11, 6.6, and before. */
struct inode___newer {
	int64_t i_ctime_sec;
	uint32_t i_ctime_nsec;
};

struct inode___old {
	struct timespec64 __i_ctime;
};

struct inode___older {
	struct timespec64 i_ctime;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags, vm_pgoff;
	struct file *vm_file;
};

#define KERNEL_VM_EXEC	  4
#define KERNEL_PF_KTHREAD 0x200000

typedef struct {
	uint32_t val;
} kuid_t;

struct cred {
	kuid_t uid, suid, euid, fsuid;
};

struct task_struct {
	unsigned int flags;
	struct mm_struct *mm;
	int tgid, pid;
	unsigned int __state;
	unsigned int on_cpu; /* libbpf fits the width of unsigned members: a byte in Linux 7.2 */
	unsigned int in_iowait : 1;
	int exit_state;
	uint32_t self_exec_id;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	uint64_t start_time, start_boottime;
	void *stack;
	char comm[16];
	const struct cred *cred;
	struct thread_struct thread;
};

struct pt_regs {
#if defined(DCPI_BPF_x86_64)
	uint64_t ip, cs;
#define KERNEL_REGS_IP	 ip
#define KERNEL_REGS_MODE cs
#else
	uint64_t pc, pstate;
	int32_t syscallno;
#define KERNEL_REGS_IP	 pc
#define KERNEL_REGS_MODE pstate
#endif
};

struct hrtimer_clock_base {
	void *cpu_base;
};

struct hrtimer {
	void *function;
	struct hrtimer_clock_base *base;
};

#pragma clang attribute pop

/* Where the kernel is, and (x86-64) between what addresses it has mapped all memory. */
extern const void _stext __ksym __weak;
extern const void _end __ksym __weak;
extern const void page_offset_base __ksym __weak;
extern const void vmalloc_base __ksym __weak;

/*
 * Linux 6.2; the first is no call, but a word to the verifier. Objects for older kernels
 * (KERNEL_OLDER) do not name them: libbpf would look for them in all modules, which takes
 * CAP_SYS_ADMIN.
 */
#ifdef KERNEL_OLDER
#define KERNEL_HAS_FUNCTIONS false
#else
#define KERNEL_HAS_FUNCTIONS true
#endif
extern void *bpf_rdonly_cast(const void *obj, uint32_t btf_id) __ksym __weak;
extern struct task_struct *bpf_task_from_pid(int32_t pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

#endif
