/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "stand_ins.h"

static struct image *of(struct images *t, struct image *img, const struct process *p)
{
	const struct images_owner owner = process_owner(p);

	return images_of(t, img, &owner);
}

static void one_identity_one_image(void **state)
{
	struct images *t = images_new();
	const struct base_id one = trial_id(1), two = trial_id(2);
	struct image *a = images_get(t, PROFDB_FILE, &one, "/bin/a", "a");

	(void)state;
	assert_non_null(a);
	assert_ptr_equal(images_get(t, PROFDB_FILE, &one, "/other/name", "name"), a);
	assert_ptr_equal(images_get(t, PROFDB_FILE, &one, "/bin/a", "a"), a);
	assert_string_equal(profdb_profile_path(a->counts, 0), "/bin/a");
	assert_string_equal(profdb_profile_path(a->counts, 1), "/other/name");
	assert_null(profdb_profile_path(a->counts, 2));
	/* A rebuilt file at the same path is another image, and so is another kind. */
	assert_ptr_not_equal(images_get(t, PROFDB_FILE, &two, "/bin/a", "a"), a);
	assert_ptr_not_equal(images_get(t, PROFDB_VDSO, &one, "/bin/a", "a"), a);
	assert_int_equal(images_nr(t), 3);
	images_free(t);
}

/* What carries the build-id of another file is not that file. */
static void code_tells_files_apart(void **state)
{
	const struct base_id one = trial_id(1), mine = trial_id(2), theirs = trial_id(3),
			     none = { 0 };
	struct images *t = images_new();
	struct image *forged = images_get_file(t, &one, &mine, "/home/forger/perl", "perl"), *own;
	struct image *perl = images_get_file(t, &one, &none, "/usr/bin/perl", "perl");
	const struct images_owner owner = { .pid = 1, .label = "x" };

	(void)state;
	assert_ptr_not_equal(forged, perl);
	assert_ptr_equal(images_get(t, PROFDB_FILE, &one, "/usr/bin/perl", "perl"), perl);
	assert_ptr_equal(images_get_file(t, &one, &mine, "/home/forger/perl", "perl"), forged);
	assert_ptr_not_equal(images_get_file(t, &one, &theirs, "/home/forger/perl", "perl"),
			     forged);
	assert_null(profdb_profile_path(perl->counts, 1));
	assert_null(profdb_profile_word(perl->counts, "text"));
	assert_non_null(profdb_profile_word(forged->counts, "text"));
	image_set_extent(forged, &(struct base_extent){ .start = 0x1000 });
	assert_null(profdb_profile_word(forged->counts, "tstart"));
	image_set_extent(forged, &(struct base_extent){ .start = 0x400000, .size = 8192 });
	image_set_extent(forged, &(struct base_extent){ .start = 1, .size = 1 });
	own = images_of(t, forged, &owner);
	assert_string_equal(profdb_profile_word(own->counts, "tstart"), "0x400000");
	assert_string_equal(profdb_profile_word(own->counts, "tsize"), "8192");
	assert_ptr_not_equal(own, images_of(t, perl, &owner));
	assert_string_equal(profdb_profile_word(own->counts, "text"),
			    profdb_profile_word(forged->counts, "text"));
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 0);
	images_free(t);
}

static void dynamic_keeps_its_name(void **state)
{
	struct images *t = images_new();
	const struct base_id one = trial_id(1), two = trial_id(2);
	struct image *a = images_get(t, PROFDB_DYNAMIC, NULL, "dyn/x.dyn", "x.dyn");

	(void)state;
	assert_int_equal(a->id.len, 0);
	image_set_id(a, &one);
	assert_ptr_equal(images_get(t, PROFDB_DYNAMIC, &two, "dyn/x.dyn", "x.dyn"), a);
	assert_true(base_id_equal(profdb_profile_image(a->counts), &one));
	assert_ptr_not_equal(images_get(t, PROFDB_DYNAMIC, &one, "dyn/y.dyn", "y.dyn"), a);
	images_free(t);
}

static void buckets(void **state)
{
	struct images *t = images_new();
	struct image *idle = images_bucket(t, ACCOUNT_BUCKET_IDLE);

	(void)state;
	assert_ptr_equal(images_bucket(t, ACCOUNT_BUCKET_IDLE), idle);
	assert_ptr_not_equal(images_bucket(t, ACCOUNT_BUCKET_UNKNOWN), idle);
	assert_int_equal(idle->kind, PROFDB_NAMED);
	assert_string_equal(profdb_profile_path(idle->counts, 0), "idle");
	images_free(t);
}

static void drop_unused(void **state)
{
	struct images *t = images_new();
	const struct base_id one = trial_id(1), two = trial_id(2), three = trial_id(3);
	struct image *mapped = images_get(t, PROFDB_FILE, &one, "/a", "a");
	struct image *dirty = images_get(t, PROFDB_FILE, &two, "/b", "b");
	struct image *dynamic = images_get(t, PROFDB_DYNAMIC, NULL, "c", "c");

	(void)state;
	assert_non_null(images_get(t, PROFDB_FILE, &three, "/unused", "unused"));
	image_get(mapped);
	image_get(dynamic);
	dirty->dirty = true;
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 3);
	image_put(mapped);
	dirty->dirty = false;
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 1);
	assert_ptr_equal(images_get(t, PROFDB_DYNAMIC, NULL, "c", "c"), dynamic);
	/* A pseudo-image too, when its facility is gone. */
	image_put(dynamic);
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 0);
	images_free(t);
}

/* What was found lately is found at once: as it is now, and each by its own identity. */
static void got_again(void **state)
{
	struct images *t = images_new();
	struct base_id ids[64];
	struct image *imgs[64];
	char path[32];

	(void)state;
	for (size_t i = 0; i < 64; i++) {
		ids[i] = trial_id((uint8_t)(i + 1));
		/* Several begin alike, and are of one path: a file that was built anew. */
		ids[i].bytes[0] = (uint8_t)(i / 8);
		snprintf(path, sizeof(path), "/a%zu", i / 2);
		imgs[i] = images_get(t, PROFDB_FILE, &ids[i], path, "a");
		assert_ptr_equal(images_get(t, PROFDB_FILE, &ids[i], path, "a"), imgs[i]);
	}
	for (size_t i = 64; i-- > 0;) {
		snprintf(path, sizeof(path), "/a%zu", i / 2);
		assert_ptr_equal(images_get(t, PROFDB_FILE, &ids[i], path, "a"), imgs[i]);
		assert_ptr_equal(images_get(t, PROFDB_FILE, &ids[i], "/other", "a"), imgs[i]);
		assert_string_equal(profdb_profile_path(imgs[i]->counts, 1), "/other");
		/* Nothing has counts: all of them go, and what is got next is new. */
		imgs[i]->dirty = true;
		images_drop_unused(t);
		assert_int_equal(images_nr(t), 1);
		assert_ptr_equal(images_get(t, PROFDB_FILE, &ids[i], path, "a"), imgs[i]);
		imgs[i]->dirty = false;
		images_drop_unused(t);
		assert_int_equal(images_nr(t), 0);
		imgs[i] = images_get(t, PROFDB_FILE, &ids[i], path, "a");
		assert_null(profdb_profile_path(imgs[i]->counts, 1));
		for (size_t k = 0; k < i; k++) {
			snprintf(path, sizeof(path), "/a%zu", k / 2);
			imgs[k] = images_get(t, PROFDB_FILE, &ids[k], path, "a");
		}
	}
	images_free(t);
}

static void drop_many(void **state)
{
	struct images *t = images_new();
	char path[16];

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		struct image *img;

		snprintf(path, sizeof(path), "/%u", i);
		img = images_get(t, PROFDB_FILE, NULL, path, path + 1);
		assert_non_null(img);
		if (i % 10 == 0)
			image_get(img);
	}
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 100);
	for (unsigned int i = 0; i < 1000; i += 10) {
		snprintf(path, sizeof(path), "/%u", i);
		image_put(images_get(t, PROFDB_FILE, NULL, path, path + 1));
	}
	assert_int_equal(images_nr(t), 100);
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 0);
	images_free(t);
}

static void processes_apart(void **state)
{
	const struct base_opt_list names = { (const char *[]){ "w", "/lib/l.so", "fac" }, 3 };
	struct process one = { .pid = 7, .began_ns = 1000 }, two = { .pid = 7, .began_ns = 2000 };
	struct process listed = { .pid = 7, .start_time_ns = 3000 }, placeholder = { .pid = 7 };
	const struct base_id w = trial_id(1), l = trial_id(2), o = trial_id(3);
	struct images *t = images_new();
	struct image *img, *own;

	(void)state;
	images_choose(t, &names, NULL);
	assert_true(images_is_apart(t, "fac"));
	assert_true(images_is_apart(t, "/any/w"));
	assert_false(images_is_apart(t, "/other/l.so"));
	img = images_get(t, PROFDB_FILE, &w, "/bin/w", "w");
	own = of(t, img, &one);
	assert_ptr_not_equal(own, img);
	assert_ptr_equal(of(t, img, &one), own);
	assert_ptr_not_equal(of(t, img, &two), own);
	assert_string_equal(profdb_profile_word(own->counts, "process"), "7-1000");
	assert_string_equal(of(t, img, &listed)->process, "7-3000");
	assert_string_equal(of(t, img, &placeholder)->process, "7");
	/* By another name of the same file; others are everybody's. */
	img = images_get(t, PROFDB_FILE, &l, "/other/l.so", "l.so");
	assert_ptr_equal(of(t, img, &one), img);
	assert_ptr_equal(images_get(t, PROFDB_FILE, &l, "/lib/l.so", "l.so"), img);
	assert_ptr_not_equal(of(t, img, &one), img);
	img = images_get(t, PROFDB_FILE, &o, "/bin/o", "o");
	assert_ptr_equal(of(t, img, &one), img);
	assert_int_equal(images_nr(t), 3 + 4 + 1);
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 0);
	images_free(t);
}

static void labels_apart(void **state)
{
	const struct base_opt_list names = { (const char *[]){ "w" }, 1 };
	struct process a = { .pid = 7, .began_ns = 1000, .label = "a" };
	struct process b = { .pid = 7, .began_ns = 1000, .label = "b" }, none = { .pid = 8 };
	const struct base_id w = trial_id(1), o = trial_id(2);
	struct images *t = images_new();
	struct image *img, *own, *bucket;

	(void)state;
	images_choose(t, &names, NULL);
	img = images_get(t, PROFDB_FILE, &o, "/bin/o", "o");
	assert_ptr_equal(of(t, img, &none), img);
	assert_ptr_equal(of(t, img, NULL), img);
	own = of(t, img, &a);
	assert_ptr_not_equal(own, img);
	assert_ptr_not_equal(own, of(t, img, &b));
	assert_ptr_equal(own, of(t, img, &a));
	assert_string_equal(own->label, "a");
	assert_string_equal(profdb_profile_word(own->counts, "label"), "a");
	assert_null(profdb_profile_word(own->counts, "process"));
	/* Of one that is kept apart by process as well. */
	img = images_get(t, PROFDB_FILE, &w, "/bin/w", "w");
	own = of(t, img, &a);
	assert_string_equal(own->process, "7-1000");
	assert_string_equal(own->label, "a");
	assert_ptr_not_equal(own, of(t, img, &b));
	assert_null(of(t, img, &none)->label);
	/* Buckets too; those of labels do not stay for ever. */
	bucket = images_bucket(t, ACCOUNT_BUCKET_UNKNOWN);
	own = of(t, bucket, &a);
	assert_ptr_not_equal(own, bucket);
	assert_ptr_equal(own, of(t, bucket, &a));
	own->dirty = true;
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 2);
	assert_ptr_equal(own, of(t, bucket, &a));
	images_free(t);
}

/* A pseudo-image is known by its name, labelled or not. */
static void label_of_dynamic_code(void **state)
{
	struct images *t = images_new();
	struct image *img = images_get(t, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");

	(void)state;
	assert_int_equal(image_set_label(img, "a"), 0);
	assert_ptr_equal(images_get(t, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn"), img);
	assert_string_equal(profdb_profile_word(img->counts, "label"), "a");
	images_drop_unused(t);
	assert_int_equal(images_nr(t), 0);
	images_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_identity_one_image),
		cmocka_unit_test(code_tells_files_apart),
		cmocka_unit_test(dynamic_keeps_its_name),
		cmocka_unit_test(buckets),
		cmocka_unit_test(drop_unused),
		cmocka_unit_test(got_again),
		cmocka_unit_test(processes_apart),
		cmocka_unit_test(labels_apart),
		cmocka_unit_test(label_of_dynamic_code),
		cmocka_unit_test(drop_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
