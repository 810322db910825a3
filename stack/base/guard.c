/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * memcpy() has no frame on the stack and changes none of the registers that a function has to keep.
 * So a thread that faults in the memcpy() of uw_guarded_copy() has the address behind that call
 * where a return address is expected, and no other thread has; and there is nothing to restore. A
 * memcpy() of another kind is not recognised, and its faults are the program's as before.
 *
 * A variable of the thread would tell, too. But the library is loaded late and has much memory of
 * threads, more than such a variable (initial-exec) may make it claim; any other kind may have to
 * be allocated, which a handler of signals cannot do.
 *
 * uw_guarded_cas() calls nothing and keeps nothing on the stack: which instruction faults tells.
 */
#if UW_GUARDED && defined(__x86_64__)
__asm__(".text\n"
	".globl uw_guarded_copy, uw_guarded_copy_back\n"
	".hidden uw_guarded_copy, uw_guarded_copy_back\n"
	".type uw_guarded_copy, @function\n"
	"uw_guarded_copy:\n"
	".cfi_startproc\n"
	"	sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	call memcpy@PLT\n"
	"uw_guarded_copy_back:\n"
	"	add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size uw_guarded_copy, . - uw_guarded_copy\n"
	".globl uw_guarded_cas, uw_guarded_cas_at, uw_guarded_cas_behind, uw_guarded_cas_failed\n"
	".hidden uw_guarded_cas, uw_guarded_cas_at, uw_guarded_cas_behind, uw_guarded_cas_failed\n"
	".type uw_guarded_cas, @function\n"
	"uw_guarded_cas:\n"
	".cfi_startproc\n"
	"	mov (%rsi), %rax\n"
	"uw_guarded_cas_at:\n"
	"	lock cmpxchg %rdx, (%rdi)\n"
	"uw_guarded_cas_behind:\n"
	"	mov %rax, (%rsi)\n"
	"	mov $1, %eax\n"
	"	ret\n"
	"uw_guarded_cas_failed:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size uw_guarded_cas, . - uw_guarded_cas\n");

extern const char uw_guarded_copy_back[];

static uintptr_t stack_of(const ucontext_t *u)
{
	return (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
}

static uintptr_t place_of(const ucontext_t *u)
{
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
}

static void go_on_at(ucontext_t *u, const char *place)
{
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)place;
}

/* True: the thread goes on as if the copy had returned false. */
static bool come_back(ucontext_t *u)
{
	const uintptr_t *sp = (const uintptr_t *)stack_of(u);

	if (sp[0] != (uintptr_t)uw_guarded_copy_back)
		return false;
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)sp[2];
	u->uc_mcontext.gregs[REG_RSP] = (greg_t)(sp + 3);
	u->uc_mcontext.gregs[REG_RAX] = 0;
	return true;
}
#elif UW_GUARDED && defined(__aarch64__)
__asm__(".text\n"
	".globl uw_guarded_copy, uw_guarded_copy_back\n"
	".hidden uw_guarded_copy, uw_guarded_copy_back\n"
	".type uw_guarded_copy, %function\n"
	"uw_guarded_copy:\n"
	".cfi_startproc\n"
	"	stp x29, x30, [sp, #-16]!\n"
	".cfi_adjust_cfa_offset 16\n"
	".cfi_rel_offset x29, 0\n"
	".cfi_rel_offset x30, 8\n"
	"	bl memcpy\n"
	"uw_guarded_copy_back:\n"
	"	ldp x29, x30, [sp], #16\n"
	".cfi_restore x29\n"
	".cfi_restore x30\n"
	".cfi_adjust_cfa_offset -16\n"
	"	mov w0, #1\n"
	"	ret\n"
	".cfi_endproc\n"
	".size uw_guarded_copy, . - uw_guarded_copy\n"
	".globl uw_guarded_cas, uw_guarded_cas_at, uw_guarded_cas_behind, uw_guarded_cas_failed\n"
	".hidden uw_guarded_cas, uw_guarded_cas_at, uw_guarded_cas_behind, uw_guarded_cas_failed\n"
	".type uw_guarded_cas, %function\n"
	"uw_guarded_cas:\n"
	".cfi_startproc\n"
	"	ldr x3, [x1]\n"
	"uw_guarded_cas_at:\n"
	"	ldaxr x4, [x0]\n"
	"	cmp x4, x3\n"
	"	b.ne uw_guarded_cas_behind\n"
	"	stlxr w5, x2, [x0]\n"
	"	cbnz w5, uw_guarded_cas_at\n"
	"uw_guarded_cas_behind:\n"
	"	str x4, [x1]\n"
	"	mov w0, #1\n"
	"	ret\n"
	"uw_guarded_cas_failed:\n"
	"	mov w0, #0\n"
	"	ret\n"
	".cfi_endproc\n"
	".size uw_guarded_cas, . - uw_guarded_cas\n");

extern const char uw_guarded_copy_back[];

static uintptr_t stack_of(const ucontext_t *u)
{
	return u->uc_mcontext.sp;
}

static uintptr_t place_of(const ucontext_t *u)
{
	return u->uc_mcontext.pc;
}

static void go_on_at(ucontext_t *u, const char *place)
{
	u->uc_mcontext.pc = (uintptr_t)place;
}

static bool come_back(ucontext_t *u)
{
	const uint64_t *sp = (const uint64_t *)stack_of(u);

	if (u->uc_mcontext.regs[30] != (uint64_t)uw_guarded_copy_back)
		return false;
	u->uc_mcontext.regs[29] = sp[0];
	u->uc_mcontext.regs[0] = 0;
	u->uc_mcontext.pc = sp[1];
	u->uc_mcontext.sp = (uint64_t)(sp + 2);
	return true;
}
#else
static uintptr_t stack_of(const ucontext_t *u)
{
	(void)u;
	return 0;
}

static bool come_back(ucontext_t *u)
{
	(void)u;
	return false;
}
#endif

#if UW_GUARDED
extern const char uw_guarded_cas_at[], uw_guarded_cas_behind[], uw_guarded_cas_failed[];

/* True: the thread goes on as if uw_guarded_cas() had returned false. */
static bool leave_cas(ucontext_t *u)
{
	uintptr_t at = place_of(u);

	if (at < (uintptr_t)uw_guarded_cas_at || at >= (uintptr_t)uw_guarded_cas_behind)
		return false;
	go_on_at(u, uw_guarded_cas_failed);
	return true;
}
#else
static bool leave_cas(ucontext_t *u)
{
	(void)u;
	return false;
}
#endif

#define BELOW_STACK (64u << 10)
#define RED_ZONE    128u

/* Then there may be nothing to read at the stack pointer. */
static bool is_stack_overflow(const siginfo_t *info, const ucontext_t *u)
{
	uintptr_t at = (uintptr_t)info->si_addr, sp = stack_of(u);

	return at < sp + RED_ZONE && at + BELOW_STACK > sp;
}

/* What was there before, by signal. Replaced as a whole, and read by handlers: never freed. */
static struct sigaction before_segv, before_bus;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The fault that is being passed on, and how deep in the stack: a handler need not return from it.
 */
static _Atomic(const void *) passing;
static _Atomic(uintptr_t) passing_at;

static void by_default(int sig, const siginfo_t *info)
{
	signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		raise(sig);
}

/* What would have happened without us. A fault comes again as soon as we return; what was sent by
 * kill(2) does not. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *old = sig == SIGBUS ? &before_bus : &before_segv;
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	/* The one before us may pass on to us, if it was put in front of us and we of it. */
	if ((passing == context && at < passing_at) || old->sa_handler == SIG_DFL) {
		by_default(sig, info);
		return;
	}
	if (old->sa_handler == SIG_IGN) {
		if (info->si_code > 0)
			by_default(sig, info);
		return;
	}
	passing = context;
	passing_at = at;
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else
		old->sa_handler(sig);
	passing = NULL;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (info->si_code > 0 &&
	    (leave_cas(context) || (!is_stack_overflow(info, context) && come_back(context))))
		return;
	pass_on(sig, info, context);
}

static void take(int sig, struct sigaction *before)
{
	struct sigaction ours = { .sa_sigaction = on_fault,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER },
			 now;

	sigemptyset(&ours.sa_mask);
	if (sigaction(sig, NULL, &now) ||
	    (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
		return;
	*before = now;
	sigaction(sig, &ours, NULL);
}

void uw_guard_install(void)
{
	if (!UW_GUARDED)
		return;
	pthread_mutex_lock(&lock);
	take(SIGSEGV, &before_segv);
	take(SIGBUS, &before_bus);
	pthread_mutex_unlock(&lock);
}

bool uw_rope_place_pieces(struct uw_rope r, void *dst, size_t n)
{
	uint8_t *d = dst;

	while (n) {
		struct uw_span s = uw_rope_head(r);

		s.n = s.n < n ? s.n : n;
		if (!uw_guarded_copy(d, s.p, s.n))
			return false;
		d += s.n;
		n -= s.n;
		r = uw_rope_sub(r, s.n, r.len - s.n);
	}
	return true;
}
