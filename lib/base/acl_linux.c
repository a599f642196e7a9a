/* SPDX-License-Identifier: BSD-2-Clause */
/* The readers of a file beyond its owner are set and read here as POSIX access lists of Linux. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base.h"

#define ACL_NAME "system.posix_acl_access"

/* The kernel's form of an access control list (acl(5)): a version, then entries. */
struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};
struct acl {
	uint32_t version;
	struct acl_entry entry[5];
};

enum { ACL_VERSION = 2 };
enum { ACL_USER_OWNER = 1, ACL_USER = 2, ACL_GROUP_OWNER = 4, ACL_MASK = 0x10, ACL_REST = 0x20 };
enum { READ = 4, WRITE = 2, SEARCH = 1 };

/* @search: SEARCH of a folder, else 0. */
static struct acl make(uint32_t uid, bool group, uint16_t search)
{
	const uint32_t nobody = UINT32_MAX;
	const uint16_t read = READ | search, of_group = group ? read : 0;

	return (struct acl){ .version = ACL_VERSION,
			     .entry = { { ACL_USER_OWNER, WRITE | read, nobody },
					{ ACL_USER, read, uid },
					{ ACL_GROUP_OWNER, of_group, nobody },
					{ ACL_MASK, read, nobody },
					{ ACL_REST, 0, nobody } } };
}

int base_reader_set(int fd, uint32_t uid, bool group)
{
	struct stat st;
	struct acl acl;

	if (fstat(fd, &st) < 0)
		return -errno;
	acl = make(uid, group, S_ISDIR(st.st_mode) ? SEARCH : 0);
	if (fsetxattr(fd, ACL_NAME, &acl, sizeof(acl), 0) < 0)
		return -errno;
	return 0;
}

int base_reader_clear(int fd)
{
	if (fremovexattr(fd, ACL_NAME) < 0 && errno != ENODATA && errno != ENOTSUP)
		return -errno;
	return fchmod(fd, 0600) < 0 ? -errno : 0;
}

/* The user named in a list that base_reader_set made, of @len bytes (below 0: none). */
static uint32_t reader_in(const struct acl *acl, ssize_t len)
{
	struct acl same;

	if (len != (ssize_t)sizeof(*acl))
		return UINT32_MAX;
	same = make(acl->entry[1].id, acl->entry[2].perm == READ, 0);
	return memcmp(acl, &same, sizeof(same)) ? UINT32_MAX : acl->entry[1].id;
}

uint32_t base_reader_get(int fd)
{
	struct acl acl;

	return reader_in(&acl, fgetxattr(fd, ACL_NAME, &acl, sizeof(acl)));
}

/* Any user who may look a file up may read its list, but a descriptor needs the right to read. */
uint32_t base_reader_of(int dir_fd, const char *name)
{
	char path[64];
	struct acl acl;
	uint32_t uid;
	int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return UINT32_MAX;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	uid = reader_in(&acl, getxattr(path, ACL_NAME, &acl, sizeof(acl)));
	close(fd);
	return uid;
}
