/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Nothing: what starting costs. */
#include "bare.h"

int main(void)
{
	return result(0);
}
