// SPDX-License-Identifier: GPL-2.0-only
// Built as kmm_hello.ko: loads as far as its init function, which finds no device.
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static char *greeting = "hello";
module_param(greeting, charp, 0444);

static int __init kmm_hello_init(void)
{
	pr_err("kmm_hello: no device found\n");
	return -ENODEV;
}

static void __exit kmm_hello_exit(void)
{
}

module_init(kmm_hello_init);
module_exit(kmm_hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module whose init fails");
MODULE_VERSION("2");
