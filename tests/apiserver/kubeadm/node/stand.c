// SPDX-License-Identifier: Apache-2.0
// Plays what is no part of the test, by the name that it is called: the sandbox of each Pod, which ends at once if it
// has arguments as kubeadm's health Job gives it; CoreDNS, of which only the answers to probes are here; kube-proxy,
// which waits.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number)
{
	(void)number;
	_exit(0);
}

static void reap(int number)
{
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int listen_on(int port)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address;
	memset(&address, 0, sizeof address);
	address.sin_family = AF_INET;
	address.sin_port = htons((unsigned short)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0)
		_exit(1);
	return fd;
}

static void answer(int fd)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK";
	char buffer[4096];
	int client = accept(fd, NULL, NULL);
	if (client < 0)
		return;
	if (read(client, buffer, sizeof buffer) > 0 && write(client, text, sizeof text - 1) > 0)
		shutdown(client, SHUT_WR);
	close(client);
}

int main(int count, char **words)
{
	const char *slash = strrchr(words[0], '/');
	const char *name = slash ? slash + 1 : words[0];
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, reap);
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(name, "coredns") == 0) {
		struct pollfd doors[2] = {{listen_on(8080), POLLIN, 0}, {listen_on(8181), POLLIN, 0}};
		for (;;) {
			if (poll(doors, 2, -1) < 1)
				continue;
			for (int i = 0; i < 2; ++i) {
				if (doors[i].revents)
					answer(doors[i].fd);
			}
		}
	}
	if (strcmp(name, "pause") == 0 && count > 1)
		return 0;
	for (;;)
		pause();
}
