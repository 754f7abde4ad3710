/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Integer work of CoreMark's kinds: list search, reversal and merge sort, a small integer matrix product, a
   state machine that scans numbers, and a checksum over all of it. */
#include "bench.h"

#define ITEMS 200
#define SIZE 24
#define TEXT 800
#define ROUNDS 220

struct item {
	struct item *next;
	int16_t key, value;
};

static struct item items[ITEMS];
static int16_t a[SIZE][SIZE], b[SIZE][SIZE];
static int32_t c[SIZE][SIZE];
static char text[TEXT + 1];

static uint16_t crc16(uint16_t crc, uint32_t data)
{
	for (int bit = 0; bit < 32; bit++, data >>= 1)
		crc = (crc >> 1) ^ (((crc ^ data) & 1) ? 0xa001 : 0);
	return crc;
}

static struct item *find(struct item *list, int16_t key)
{
	while (list && list->key != key)
		list = list->next;
	return list;
}

static struct item *reverse(struct item *list)
{
	struct item *done = NULL;

	while (list) {
		struct item *next = list->next;

		list->next = done;
		done = list;
		list = next;
	}
	return done;
}

static struct item *merge_sort(struct item *list)
{
	struct item *slow = list, *fast, *other, *head, **tail = &head;

	if (!list || !list->next)
		return list;
	for (fast = list->next; fast && fast->next; fast = fast->next->next)
		slow = slow->next;
	other = slow->next;
	slow->next = NULL;
	list = merge_sort(list);
	other = merge_sort(other);
	while (list && other) {
		struct item **least = list->value <= other->value ? &list : &other;

		*tail = *least;
		tail = &(*least)->next;
		*least = (*least)->next;
	}
	*tail = list ? list : other;
	return head;
}

static uint16_t list_round(uint16_t crc)
{
	struct item *list = items, *found;

	for (int n = 0; n < ITEMS; n++) {
		items[n].next = n + 1 < ITEMS ? &items[n + 1] : NULL;
		items[n].value ^= crc & 0xff;
	}
	for (int16_t key = 0; key < ITEMS; key += 9) {
		found = find(list, key);
		crc = crc16(crc, found ? (uint16_t)found->value : 0);
		list = reverse(list);
	}
	list = merge_sort(list);
	for (; list; list = list->next)
		crc = crc * 31 + (uint16_t)list->value;
	return crc;
}

static uint16_t matrix_round(uint16_t crc)
{
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			int32_t sum = 0;

			for (int k = 0; k < SIZE; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	for (int i = 0; i < SIZE; i++)
		crc = crc16(crc, c[i][(i * 7) % SIZE]);
	return crc;
}

enum state { START, SIGN, INTEGER, POINT, FRACTION, EXPONENT, INVALID, STATES };

static enum state step(enum state state, char ch)
{
	int digit = ch >= '0' && ch <= '9';

	if (ch == ',')
		return START;
	switch (state) {
	case START:
		return digit ? INTEGER : ch == '+' || ch == '-' ? SIGN : ch == '.' ? POINT : INVALID;
	case SIGN:
		return digit ? INTEGER : ch == '.' ? POINT : INVALID;
	case INTEGER:
		return digit ? INTEGER : ch == '.' ? FRACTION : ch == 'e' ? EXPONENT : INVALID;
	case POINT:
	case FRACTION:
		return digit ? FRACTION : ch == 'e' ? EXPONENT : INVALID;
	case EXPONENT:
		return digit || ch == '-' ? EXPONENT : INVALID;
	default:
		return INVALID;
	}
}

static uint16_t scan_round(uint16_t crc)
{
	unsigned int seen[STATES] = { 0 };
	enum state state = START;

	for (const char *at = text; *at; at++) {
		state = step(state, *at);
		seen[state]++;
	}
	for (int n = 0; n < STATES; n++)
		crc = crc16(crc, seen[n]);
	text[crc % TEXT] = "0123456789+-.e,"[crc % 15];
	return crc;
}

int main(void)
{
	uint16_t crc = 0xffff;

	preparation_starts();
	for (int n = 0; n < ITEMS; n++) {
		items[n].key = (n * 37) % ITEMS;
		items[n].value = random64();
	}
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			a[i][j] = random64();
			b[i][j] = random64();
		}
	for (int n = 0; n < TEXT; n++)
		text[n] = "0123456789012345678901234+-.e,,,"[random64() % 32];

	work_starts();
	for (int round = 0; round < ROUNDS; round++)
		crc = scan_round(matrix_round(list_round(crc)));
	return work_ends(crc);
}
