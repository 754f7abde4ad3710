/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Starts or stops the region of interest, for scripts in the guest. */
#include <stdio.h>
#include <string.h>

#include "region.h"

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "start")) {
		TIPSIM_REGION_START();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "stop")) {
		TIPSIM_REGION_STOP();
		return 0;
	}
	fputs("Usage: tipsim-region start|stop\n", stderr);
	return 2;
}
