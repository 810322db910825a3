/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider in a process without the shim: one line, and no device. argv[1]: the provider. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char said[512] = "";
	int fd[2], old = dup(STDERR_FILENO);
	void *lib;

	if (argc != 2 || pipe(fd))
		return 2;
	dup2(fd[1], STDERR_FILENO);
	lib = dlopen(argv[1], RTLD_NOW);
	dup2(old, STDERR_FILENO);
	close(fd[1]);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (read(fd[0], said, sizeof(said) - 1) < 0)
		return 2;
	if (strcmp(said, "uwarp: no device: start the program with uwarp-run\n")) {
		fprintf(stderr, "said: \"%s\"\n", said);
		return 1;
	}
	return 0;
}
