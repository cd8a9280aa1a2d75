/*
 * no_membarrier: makes the kernel refuse membarrier(2) to this process, as some
 * sandboxes do. That is for good, so tests call it in a fork's child or at the
 * end of a program.
 */
#pragma once

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Refuses membarrier(2) to this thread and to those that it starts. Returns 1
 * on success. */
static inline int no_membarrier(void) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                     offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
               syscall(SYS_membarrier, 0, 0, 0) == -1;
}
