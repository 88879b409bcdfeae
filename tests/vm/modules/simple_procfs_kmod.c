// SPDX-License-Identifier: GPL-2.0-only
// /proc/simple-procfs-kmod tells how often it was read: something for a tool of a kmods-via-containers instance.
#include <linux/atomic.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static atomic_t simple_reads = ATOMIC_INIT(0);

static int simple_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "read %d\n", atomic_inc_return(&simple_reads));
	return 0;
}

static int __init simple_procfs_init(void)
{
	return proc_create_single("simple-procfs-kmod", 0444, NULL, simple_show) ? 0 : -ENOMEM;
}

static void __exit simple_procfs_exit(void)
{
	remove_proc_entry("simple-procfs-kmod", NULL);
}

module_init(simple_procfs_init);
module_exit(simple_procfs_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module with a file below /proc");
MODULE_VERSION("dd1a7d4");
