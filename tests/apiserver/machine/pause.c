// SPDX-License-Identifier: Apache-2.0
// Does nothing until it is told to end: the sandbox of each Pod, and what plays a device plugin.
#include <signal.h>
#include <unistd.h>

static void end(int number)
{
	(void)number;
	_exit(0);
}

int main(void)
{
	signal(SIGTERM, end);
	signal(SIGINT, end);
	for (;;)
		pause();
}
