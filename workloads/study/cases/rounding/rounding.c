/*
 * Coordinates rounded down and up, as by a filter that looks up pixels between others, and WORK operations that wait for each other
 * on each: rounding WORK.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int work = argc > 1 ? atoi(argv[1]) : 0;
	double x = 0.3, sum = 0;
	unsigned color = 1;

	for (int i = 0; i < 500000; i++) {
		x += 0.7;
		sum += floor(x) + ceil(x);
		for (int j = 0; j < work; j++)
			color = color * 1664525 + 1013904223;
	}
	printf("%.1f %u\n", sum, color);
	return 0;
}
