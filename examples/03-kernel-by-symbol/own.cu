/* own.cu — launches a kernel that is in the same file as main(). */
#include "own.cuh"
#include "trial.h"

int main()
{
	struct trial t;
	int bad = trial_open(&t) ||
		  trial_by_symbol(&t, (const void *)Add2, "Add2 of this program, by symbol", 4);

	trial_close(&t);
	return bad;
}
