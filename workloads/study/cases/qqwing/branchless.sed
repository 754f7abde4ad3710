# Counts what is possible without a branch. Where it is, is added up: that is used only if the count is one. The compiler is kept from
# making a branch of it again.
s/if (possibilities\[valPos\] == 0) count++;/count += possibilities[valPos] == 0;/
/if (possibilities\[valPos\] == 0){$/{
	N
	N
	N
	s/if (.*){\n\s*count++;\n\s*\(last[A-Za-z]*\) *= *\([^;]*\);\n\s*}/int open = possibilities[valPos] == 0; __asm__("" : "+r"(open)); count += open; \1 += -open \& (\2);/
}
