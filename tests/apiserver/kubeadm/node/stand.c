// SPDX-License-Identifier: Apache-2.0
// Plays what is no part of the test, by the name that it is called: the sandbox of each Pod, which ends at once if it
// has arguments as kubeadm's health Job gives it; CoreDNS, which answers probes and knows one name, that of the Service
// of the API server; kube-proxy, which waits.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

static int listen_on(int kind, int port)
{
	const int on = 1;
	int fd = socket(AF_INET, kind, 0);
	struct sockaddr_in address;
	memset(&address, 0, sizeof address);
	address.sin_family = AF_INET;
	address.sin_port = htons((unsigned short)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || (kind == SOCK_STREAM && listen(fd, 16) != 0))
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

/* Answers one question: the address of Service default/kubernetes, which the kubelet gives every container; that the
 * name has no other records; and that there are no other names. */
static void answer_dns(int fd)
{
	static const char known[] = "\12kubernetes\7default\3svc\7cluster\5local";
	static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4};
	const char *service = getenv("KUBERNETES_SERVICE_HOST");
	unsigned char packet[1024];
	struct sockaddr_in asker;
	socklen_t length = sizeof asker;
	ssize_t size = recvfrom(fd, packet, 512, 0, (struct sockaddr *)&asker, &length);
	size_t end = 12;
	int is_known, is_address;
	if (size < 17 || (packet[2] & 0x80) != 0 || packet[4] != 0 || packet[5] != 1)
		return;
	while (end < (size_t)size && packet[end] != 0)
		end += packet[end] + 1u;
	if (end + 5 > (size_t)size)
		return;
	/* Lengths are no letters, so that one comparison does for all labels. */
	is_known = end - 12 == sizeof known - 1 && strncasecmp((const char *)packet + 12, known, sizeof known - 1) == 0;
	is_address = is_known && packet[end + 1] == 0 && packet[end + 2] == 1 && service != NULL;
	packet[2] = 0x84 | (packet[2] & 0x01);
	packet[3] = is_known ? 0 : 3;
	memset(packet + 6, 0, 6);
	end += 5;
	if (is_address) {
		packet[7] = 1;
		memcpy(packet + end, record, sizeof record);
		end += sizeof record;
		inet_pton(AF_INET, service, packet + end);
		end += 4;
	}
	sendto(fd, packet, end, 0, (struct sockaddr *)&asker, length);
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
		struct pollfd doors[3] = {{listen_on(SOCK_STREAM, 8080), POLLIN, 0},
					  {listen_on(SOCK_STREAM, 8181), POLLIN, 0},
					  {listen_on(SOCK_DGRAM, 53), POLLIN, 0}};
		for (;;) {
			if (poll(doors, 3, -1) < 1)
				continue;
			if (doors[2].revents)
				answer_dns(doors[2].fd);
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
