// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/rdma_isolate: how processes take part in the shares of a device.
 *
 * Owns the open files, their pages and who may use them. A file belongs to the process
 * that opened it (its number and mm): others that got hold of it, by fork or through a
 * socket, may do nothing but close it. It is attached to one device, once; the process
 * is then a group like that of a kernel ULP (grant.c, process.c). An open file holds a
 * reference to the module.
 *
 * &file_state.lock serialises the calls that attach and register with the end of the file,
 * and is outside of &riso_dev.mutex. Whoever has it waits for nothing that a process may
 * hold back: neither for its memory, which may be that of a filesystem of its own, nor for
 * its turn. The call that waits takes no mutex, as threads of one process may make it as
 * often as they like. files_lock protects the number of files of each owner. What is in the
 * pages is grant.c's.
 *
 * All calls come from the process itself and may sleep, except release(), which may
 * come from any.
 */

#include <linux/bottom_half.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "attach.h"
#include "chardev.h"
#include "compat.h"
#include "dev.h"
#include "flow.h"
#include "grant.h"
#include "process.h"
#include "sched.h"

enum {
	/* Open files of one owner. */
	RISO_FILES_MAX = 4096,
	/*
	 * The pages of an owner's processes are looked at once in this many nanoseconds in
	 * the long run, for all of them. That is more often than a device can give grants,
	 * a tick of the arbiter's clock each.
	 */
	RISO_ASK_NS = 20 * NSEC_PER_USEC,
	/* As many looks may be closer to each other. */
	RISO_ASK_BURST = 16,
	/*
	 * What takes the mutex of a device an owner may do once in this many nanoseconds in
	 * the long run: a tenth of the time of that mutex.
	 */
	RISO_TURN_NS = 100 * NSEC_PER_USEC,
	/* As often at once: a program with many queue pairs begins without a wait. */
	RISO_TURN_BURST = 1024,
	RISO_PAGES = 2,
};

/* Programs of 32 bits have the same pages. Who changes them changes RISO_USER_VERSION. */
static_assert(offsetof(struct riso_kpage, path) == 128 && sizeof(struct riso_kpage) == 1152);
static_assert(offsetof(struct riso_upage, passed) == 1088 && sizeof(struct riso_upage) == 3136);

struct file_state {
	struct mutex lock;	/* see above */
	struct mm_struct *mm;
	pid_t pid;
	unsigned long owner;	/* its key */
	struct page *page[RISO_PAGES];
	bool attached;
	bool closed;		/* by its owner, or that has ended */
	atomic_t waits;
	struct riso_process process;
};

static DEFINE_MUTEX(files_lock);
static DEFINE_XARRAY(files);

static int count_file(unsigned long owner)
{
	unsigned long num;
	int err = 0;

	mutex_lock(&files_lock);
	num = xa_to_value(xa_load(&files, owner) ?: xa_mk_value(0));
	if (num >= RISO_FILES_MAX)
		err = -EMFILE;
	else
		err = xa_err(xa_store(&files, owner, xa_mk_value(num + 1), GFP_KERNEL));
	mutex_unlock(&files_lock);
	return err;
}

static void uncount_file(unsigned long owner)
{
	unsigned long num;

	mutex_lock(&files_lock);
	num = xa_to_value(xa_load(&files, owner));
	if (num > 1)
		xa_store(&files, owner, xa_mk_value(num - 1), GFP_KERNEL);
	else
		xa_erase(&files, owner);
	mutex_unlock(&files_lock);
}

static void free_state(struct file_state *fs)
{
	int i;

	for (i = 0; i < RISO_PAGES; i++)
		if (fs->page[i])
			__free_page(fs->page[i]);
	mmdrop(fs->mm);
	kfree(fs);
}

static int chardev_open(struct inode *inode, struct file *file)
{
	struct file_state *fs;
	int err = -ENOMEM;
	int i;

	fs = kzalloc(sizeof(*fs), GFP_KERNEL_ACCOUNT);
	if (!fs)
		return -ENOMEM;
	if (!current->mm) {
		kfree(fs);
		return -EPERM;
	}
	mutex_init(&fs->lock);
	INIT_LIST_HEAD(&fs->process.list);
	init_waitqueue_head(&fs->process.wait);
	fs->mm = current->mm;
	mmgrab(fs->mm);
	fs->pid = task_tgid_nr(current);
	fs->owner = riso_place_own_key();
	for (i = 0; i < RISO_PAGES; i++) {
		fs->page[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!fs->page[i])
			goto err_free;
	}
	fs->process.kpage = page_address(fs->page[RISO_USER_KPAGE]);
	fs->process.upage = page_address(fs->page[RISO_USER_UPAGE]);
	riso_grant_init(&fs->process);
	err = count_file(fs->owner);
	if (err)
		goto err_free;
	file->private_data = fs;
	return stream_open(inode, file);

err_free:
	free_state(fs);
	return err;
}

/*
 * Others wait for what is posted on the way, and this process may be of the lowest
 * priority: it stays on its processor for that.
 */
static void run(struct riso_dev *rd)
{
	local_bh_disable();
	riso_sched_run(rd);
	local_bh_enable();
}

/*
 * The process takes part no more, nor will. It stays attached to what is left. There may be
 * any number of descriptors to close, and what is done here others wait for: once.
 */
static void close_state(struct file_state *fs)
{
	if (fs->closed)
		return;
	fs->closed = true;
	if (!fs->attached)
		return;
	riso_attach_dismiss(&fs->process);
	run(fs->process.rd);
}

/*
 * The owner closes it, or ends: others may hold the file, but can do nothing with it, and
 * would keep the place of one that is gone. Whoever was given it comes here, too, at its own
 * close(), and waits for nobody.
 */
static int chardev_flush(struct file *file, fl_owner_t id)
{
	struct file_state *fs = file->private_data;

	if (task_tgid_nr(current) != fs->pid)
		return 0;
	mutex_lock(&fs->lock);
	close_state(fs);
	mutex_unlock(&fs->lock);
	return 0;
}

static int chardev_release(struct inode *inode, struct file *file)
{
	struct file_state *fs = file->private_data;

	close_state(fs);
	if (fs->attached) {
		riso_attach_put_group(&fs->process);
		riso_dev_put(fs->process.rd);
	}
	uncount_file(fs->owner);
	free_state(fs);
	return 0;
}

/* One that shares its memory, by clone(), is another process all the same. */
static bool is_owner(const struct file_state *fs)
{
	return current->mm == fs->mm && task_tgid_nr(current) == fs->pid;
}

static int chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct file_state *fs = file->private_data;
	vm_flags_t clear = VM_MAYEXEC;

	if (!is_owner(fs))
		return -EPERM;
	if (vma->vm_pgoff >= RISO_PAGES || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    !(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if (vma->vm_pgoff == RISO_USER_KPAGE) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		clear |= VM_MAYWRITE;
	}
	/* VM_IO keeps MADV_DOFORK out. */
	vm_flags_mod(vma, VM_IO | VM_DONTCOPY | VM_DONTEXPAND, clear);
	return vm_insert_page(vma, vma->vm_start, fs->page[vma->vm_pgoff]);
}

/* The device of that name, as far as the caller's network namespace has it. */
static struct riso_dev *find_dev(const char *name, size_t size)
{
	struct riso_dev *rd;

	if (strnlen(name, size) == size)
		return ERR_PTR(-EINVAL);
	rd = riso_dev_get_by_name(name);
	if (!rd)
		return ERR_PTR(-ENODEV);
	if (rdma_dev_access_netns(rd->ibdev, current->nsproxy->net_ns))
		return rd;
	riso_dev_put(rd);
	return ERR_PTR(-ENODEV);
}

/* Who comes too often waits. */
static int wait_turn(struct riso_dev *rd)
{
	unsigned long key = riso_place_own_key();

	while (!riso_rate_take(&rd->turns, key, RISO_TURN_NS, RISO_TURN_BURST)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(1);
	}
	return 0;
}

static int report(const void __user *arg)
{
	struct riso_ioc_report r;
	struct riso_dev *rd;
	int err;

	if (copy_from_user(&r, arg, sizeof(r)))
		return -EFAULT;
	switch (r.reason) {
	case RISO_REASON_NONE:
	case RISO_REASON_NO_CQ_ROOM:
	case RISO_REASON_MEMORY:
	case RISO_REASON_UNKNOWN_OPCODE:
	case RISO_REASON_NO_THREAD:
	case RISO_REASON_SHIM_LIMIT:
		break;
	default:
		return -EINVAL;
	}
	rd = find_dev(r.dev, sizeof(r.dev));
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = wait_turn(rd) ?: riso_attach_report(rd, r.qpn, r.reason);
	riso_dev_put(rd);
	return err;
}

/* Take part in a device; its reference is the file's then. */
static int join(struct file_state *fs, struct riso_dev *rd, u32 qpn)
{
	struct riso_process *pr = &fs->process;
	struct timespec64 offset = { };
	int err;

	lockdep_assert_held(&fs->lock);
	/* Nobody would come to dismiss it. */
	if (fs->closed)
		return -ENODEV;
	if (fs->attached)
		return -EBUSY;
	timens_add_monotonic(&offset);
	pr->offset_ns = timespec64_to_ns(&offset);
	pr->rd = rd;
	err = riso_attach_admit(pr, qpn);
	if (err)
		return err;
	/* Pairs with the acquire in check_attached(), which takes no lock. */
	smp_store_release(&fs->attached, true);
	return 0;
}

static int attach(struct file_state *fs, const void __user *arg)
{
	struct riso_ioc_attach a;
	struct riso_dev *rd;
	int err;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	if (a.version != RISO_USER_VERSION)
		return -EPROTONOSUPPORT;
	rd = find_dev(a.dev, sizeof(a.dev));
	if (IS_ERR(rd))
		return PTR_ERR(rd);
	err = wait_turn(rd) ?: mutex_lock_killable(&fs->lock);
	if (!err) {
		err = join(fs, rd, a.qpn);
		mutex_unlock(&fs->lock);
	}
	if (err)
		riso_dev_put(rd);
	return err;
}

static int check_attached(const struct file_state *fs)
{
	/* Pairs with the release in join(): all of the process is there. */
	if (!smp_load_acquire(&fs->attached))
		return -ENOTCONN;
	return READ_ONCE(fs->process.gone) ? -ENODEV : 0;
}

static int reg(struct file_state *fs, void __user *arg)
{
	enum riso_class class = RISO_CLASS_BANDWIDTH;
	struct riso_ioc_register r;
	u32 path[RISO_DIRS];
	bool wishes, cut_imm;
	int err;

	if (copy_from_user(&r, arg, sizeof(r)))
		return -EFAULT;
	if (r.flags || memchr_inv(r.path, 0, sizeof(r.path) + sizeof(r.pad)))
		return -EINVAL;
	wishes = r.class_id != RISO_CLASS_BY_RULE;
	if (wishes) {
		if (r.class_id > RISO_CLASS_BANDWIDTH)
			return -EINVAL;
		class = r.class_id;
	}
	err = wait_turn(fs->process.rd) ?: mutex_lock_killable(&fs->lock);
	if (err)
		return err;
	/* The process may have closed the file meanwhile. */
	err = check_attached(fs) ?:
	      riso_attach_register(&fs->process, r.qpn, &class, wishes, &cut_imm, path);
	mutex_unlock(&fs->lock);
	if (err)
		return err;
	r.class_id = class;
	r.flags = cut_imm ? RISO_REGISTER_CUT_IMM : 0;
	r.path[RISO_TX] = path[RISO_TX];
	r.path[RISO_RX] = path[RISO_RX];
	return copy_to_user(arg, &r, sizeof(r)) ? -EFAULT : 0;
}

static bool has_news(const struct riso_process *pr, const struct riso_ioc_wait *w,
		     u32 modes)
{
	if (READ_ONCE(pr->gone) || READ_ONCE(pr->grants) != w->grants)
		return true;
	return READ_ONCE(pr->mode) != w->mode || READ_ONCE(pr->modes) != modes;
}

/* One more look at a page of this user: takes it off what the user may have. */
static bool may_ask(struct riso_process *pr)
{
	return riso_rate_take(&pr->rd->asked, riso_place_key(&pr->owner), RISO_ASK_NS,
			      RISO_ASK_BURST);
}

/* Neither lock nor turn is taken for whoever calls without a reason, or too often. */
static void ask(struct file_state *fs)
{
	struct riso_process *pr = &fs->process;

	if (!riso_grant_wishes(pr) || !may_ask(pr))
		return;
	spin_lock_irq(&pr->rd->lock);
	riso_process_ask(pr);
	spin_unlock_irq(&pr->rd->lock);
	run(pr->rd);
}

static int wait(struct file_state *fs, const void __user *arg)
{
	struct riso_process *pr = &fs->process;
	struct riso_ioc_wait w;
	u32 modes;
	long ret;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	modes = READ_ONCE(pr->modes);
	ask(fs);
	if (!w.timeout_us || has_news(pr, &w, modes))
		return 0;
	/* One thread at a time: a grant wakes up one. */
	if (atomic_xchg(&fs->waits, 1))
		return -EBUSY;
	ret = wait_event_interruptible_hrtimeout(pr->wait, has_news(pr, &w, modes),
						 ns_to_ktime((u64)w.timeout_us *
							     NSEC_PER_USEC));
	atomic_set(&fs->waits, 0);
	if (ret == -ETIME)
		return 0;
	/* Begun anew by the kernel it would wait for the whole time again. */
	return ret == -ERESTARTSYS ? -EINTR : ret;
}

static long chardev_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct file_state *fs = file->private_data;
	void __user *ptr = (void __user *)arg;

	if (!is_owner(fs))
		return -EPERM;
	switch (cmd) {
	case RISO_IOC_WAIT:
		return check_attached(fs) ?: wait(fs, ptr);
	case RISO_IOC_ATTACH:
		return attach(fs, ptr);
	case RISO_IOC_REPORT:
		return report(ptr);
	case RISO_IOC_REGISTER:
		return check_attached(fs) ?: reg(fs, ptr);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations chardev_fops = {
	.owner = THIS_MODULE,
	.open = chardev_open,
	.flush = chardev_flush,
	.release = chardev_release,
	.mmap = chardev_mmap,
	.unlocked_ioctl = chardev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Anybody's, as /dev/infiniband/uverbs is: it gives no right but to send less. */
static struct miscdevice chardev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rdma_isolate",
	.fops = &chardev_fops,
	.mode = 0666,
};

/**
 * riso_chardev_init - make the file
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int riso_chardev_init(void)
{
	return misc_register(&chardev);
}

/**
 * riso_chardev_exit - take it away; nobody has it open
 *
 * Context: may sleep.
 */
void riso_chardev_exit(void)
{
	misc_deregister(&chardev);
	xa_destroy(&files);
}
