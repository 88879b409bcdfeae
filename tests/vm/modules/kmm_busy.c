// SPDX-License-Identifier: GPL-2.0-only
// Busy for as long as somebody holds /dev/kmm_busy open.
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

static ssize_t kmm_busy_read(struct file *file, char __user *buffer, size_t count, loff_t *offset)
{
	return 0;
}

static const struct file_operations kmm_busy_operations = {
	.owner = THIS_MODULE,
	.read = kmm_busy_read,
};

static struct miscdevice kmm_busy_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kmm_busy",
	.fops = &kmm_busy_operations,
};

module_misc_device(kmm_busy_device);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module that an open device keeps busy");
MODULE_VERSION("1");
