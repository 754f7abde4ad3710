"""Small trees of our own with the layout of SPEC CPU2017, SPEC CPU 2026 and PARSEC 3.0, for the test of the package suites.

Nothing in them is from the suites: what is the same are names of folders, files, options and variables.
"""

import dataclasses
import pathlib
import shutil
import tarfile

HERE = pathlib.Path(__file__).resolve().parent

# Sums the numbers of a file, times TINY_SCALE; makes such a file; or says whether two files are equal. Its compiler must take C of
# the version that stands for EXPECTED.
SPEC_PROGRAM = r"""
#if __STDC_VERSION__ != EXPECTED
#error "another C"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long sum(const char *name)
{
	FILE *file = fopen(name, "r");
	long total = 0, number;

	while (file && fscanf(file, "%ld", &number) == 1)
		for (int i = 0; i < 1000; i++)
			total += number ^ (i & 1);
	return file ? total : -1;
}

int main(int count, char **words)
{
	const char *scale = getenv("TINY_SCALE");

	if (count == 2 && !strcmp(words[1], "make"))
		for (int i = 0; i < 50; i++)
			printf("%d\n", i * i);
	else if (count == 2)
		printf("%ld\n", sum(words[1]) * (scale ? atoi(scale) : 1));
	else if (count == 3)
		printf("%s\n", sum(words[1]) == sum(words[2]) ? "same" : "different");
	return count < 2;
}
"""

SHRC = """\
SPEC=$PWD
PATH=$SPEC/bin:$PATH
export SPEC PATH
"""

SPECINVOKE = """\
#!/bin/bash
# Says which commands are in a file.
[ "$1" = -n ] || exit 1
echo "# Invoked as: specinvoke $*"
sed -n 's/^-o [^ ]* -e [^ ]* //p; /^wait$/p' "$2"
echo "specinvoke exit: rc=0"
"""

SPECDIFF = """\
#!/bin/bash
[ "$1" = -m ] || exit 2
cmp "$2" "$3" 2>&1 && echo "specdiff run completed"
"""

# The one script that it knows sorts lines.
SPECPERL = """\
#!/bin/bash
[ "$1" = sort.pl ] && [ -f sort.pl ] || exit 2
sort "$2"
"""

PARSEC_PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef ENABLE_PARSEC_HOOKS
#include <hooks.h>
#endif

static long numbers[64], count;

static void *sum(void *part)
{
	long *total = part;

	for (int round = 0; round < 200; round++)
		for (long i = 0; i < count; i++)
			*total += numbers[i] ^ round;
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);
	FILE *file = fopen(argv[2], "r");
	pthread_t ids[8];
	static long totals[8];

	if (argc != 3 || !file || threads > 8)
		return 1;
#ifdef ENABLE_PARSEC_HOOKS
	__parsec_bench_begin(__parsec_tiny);
#endif
	while (count < 64 && fscanf(file, "%ld", &numbers[count]) == 1)
		count++;
#ifdef ENABLE_PARSEC_HOOKS
	__parsec_roi_begin();
#endif
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, sum, &totals[i]);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
#ifdef ENABLE_PARSEC_HOOKS
	__parsec_roi_end();
	__parsec_bench_end();
#endif
	printf("%d threads, %ld\n", threads, totals[threads - 1]);
	return 0;
}
"""

PARSECMGMT = """\
#!/bin/bash
# parsecmgmt -a build -p NAME -c CONFIG
[ "$1 $2 $3 $5" = "-a build -p -c" ] || exit 1
package=$(echo "$PARSECDIR"/pkgs/*/"$4")
. "$PARSECDIR/config/$6.bldconf"
. "$package/parsec/$6.bldconf"
echo "[PARSEC] configure arguments: $build_conf"
to=$package/inst/stand-in.$6/bin
mkdir -p "$to"
env $build_env $CC $CFLAGS "$package"/src/*.c -o "$to/$4" -lpthread
"""


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def spec_total(numbers: list[int], scale: int) -> int:
    return scale * sum(number ^ (i & 1) for number in numbers for i in range(1000))


@dataclasses.dataclass
class Edition:
    """An edition of SPEC CPU, as the stand-in for it has it."""

    version: str
    c_version: str
    # Names of programs with the name of their input's folder. The first makes its input by itself.
    programs: dict[str, str]


EDITIONS = {
    "cpu2017": Edition("1.1.9", "199901L", {"998.made_r": "test", "999.tiny_r": "test"}),
    "cpu2026": Edition("1.0.1", "201710L", {"899.made_s": "refspeed", "799.tiny_r": "refrate"}),
}


def make_spec(tree: pathlib.Path) -> None:
    """Makes the edition that the folder is named after, with two programs from one source."""
    edition = EDITIONS[tree.name]
    write(tree / "shrc", SHRC)
    write(tree / "version.txt", f"{edition.version}\n")
    write(tree / "bin/specinvoke", SPECINVOKE, 0o755)
    write(tree / "bin/harness/specdiff", SPECDIFF, 0o755)
    write(tree / "bin/specperl", SPECPERL, 0o755)
    shutil.copy(HERE / "standin_runcpu.py", tree / "bin/runcpu")
    (tree / "bin/runcpu").chmod(0o755)
    for (program, size), numbers in zip(edition.programs.items(), ([i * i for i in range(50)], list(range(7, 27))), strict=True):
        folder = tree / "benchspec/CPU" / program
        write(folder / "src/tiny.c", SPEC_PROGRAM.replace("EXPECTED", edition.c_version))
        write(folder / "data" / size / "input/in.txt", "\n".join(map(str, numbers)) + "\n")
        write(folder / "data" / size / "input/sort.pl", "")
        write(folder / "data" / size / "output/tiny.out", f"{spec_total(numbers, 3)}\n")
        write(folder / "data" / size / "output/same.out", "same\n")
    # Made in the run folder.
    made, size = next(iter(edition.programs.items()))
    data = tree / "benchspec/CPU" / made / "data" / size
    (data / "input/in.txt").rename(data / "output/in.txt")
    write(data / "input/control", "make\n")


def make_parsec(tree: pathlib.Path) -> None:
    """One kernel, tiny, which sums numbers in each of its threads."""
    write(tree / ".parsec_uniquefile", "")
    write(tree / "version", "3.0-stand-in\n")
    write(tree / "bin/parsecmgmt", PARSECMGMT, 0o755)
    write(tree / "config/gcc.bldconf", "export CC=gcc\n")
    package = tree / "pkgs/kernels/tiny"
    write(package / "src/tiny.c", PARSEC_PROGRAM)
    write(package / "parsec/gcc-pthreads.bldconf", 'build_env="version=pthreads"\nbuild_conf=""\n')
    write(package / "parsec/test.runconf", 'run_exec="bin/tiny"\nrun_args="${NTHREADS} in.txt"\n')
    write(package / "parsec/simdev.runconf", 'run_exec="bin/tiny"\nrun_args="${NTHREADS} in.txt"\n')
    write(package / "parsec/native.runconf", 'run_exec="bin/tiny"\nrun_args="${NTHREADS} in.txt"\n')
    for size, count in (("test", 3), ("native", 64)):
        write(package / "inputs/in.txt", "\n".join(map(str, range(1, count + 1))) + "\n")
        with tarfile.open(package / f"inputs/input_{size}.tar", "w") as archive:
            archive.add(package / "inputs/in.txt", "in.txt")
    (package / "inputs/in.txt").unlink()
