/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a command as the region of interest; exits as the command did (128 + n if signal n ended it). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	/* The URL-safe alphabet is taken too. */
	if (c == '-' || c == '_')
		return c == '-' ? 62 : 63;
	return at ? at - digits : -1;
}

/* Decodes base64 in place; NULL if it is not base64. */
static char *decode(char *text)
{
	unsigned int bits = 0, count = 0;
	char *out = text;
	const char *in;

	for (in = text; *in && *in != '='; in++) {
		int value = digit(*in);

		if (value < 0)
			return NULL;
		bits = bits << 6 | value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			*out++ = bits >> count;
		}
	}
	*out = 0;
	return text;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2 || (!strcmp(argv[1], "--base64") && argc != 3)) {
		fputs("Usage: tipsim-run COMMAND [ARGUMENT]...\n"
		      "       tipsim-run --base64 SHELL_COMMAND_IN_BASE64\n", stderr);
		return 2;
	}
	argv++;
	if (!strcmp(argv[0], "--base64")) {
		static char *shell[] = { "/bin/sh", "-c", NULL, NULL };

		shell[2] = decode(argv[1]);
		if (!shell[2]) {
			fputs("tipsim-run: not base64\n", stderr);
			return 2;
		}
		argv = shell;
	}

	TIPSIM_COMMAND_START();
	pid = vfork();
	if (!pid) {
		execvp(argv[0], argv);
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (pid < 0) {
		TIPSIM_COMMAND_STOP();
		perror("tipsim-run: vfork");
		return 126;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	TIPSIM_COMMAND_STOP();

	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}
