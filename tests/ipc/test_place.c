/* test_place.c — the paths of sockets, and that only one process at a time owns a name. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "ipc/name.h"

static char top[64], ours[80];

static gpul_status get_path(const char *name, bool make, gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES];

	*err = (gpul_error){ 0 };
	return gpul_ipc_place(name, make, path, err);
}

static void names_have_letters_digits_dots_underscores_and_hyphens(void **state)
{
	static const char *const wrong[] = { "", ".", "..", ".hidden", "a b", "a\n", "caf\xc3\xa9", "a*", "$a" };
	char path[GPUL_IPC_PATH_BYTES], expected[128];
	gpul_error err;

	(void)state;
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(get_path(wrong[i], true, &err), GPUL_EINVAL);
	snprintf(expected, sizeof expected, "%s/Weights-2_b.v1.sock", ours);
	assert_int_equal(gpul_ipc_place("Weights-2_b.v1", true, path, NULL), GPUL_OK);
	assert_string_equal(path, expected);
	assert_int_equal(gpul_ipc_place("./any/where", true, path, NULL), GPUL_OK);
	assert_string_equal(path, "./any/where");
}

static void refuses_a_path_too_long_for_a_socket(void **state)
{
	char name[200];
	gpul_error err;

	(void)state;
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(get_path(name, true, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "at most 107 are allowed"));
	name[0] = '/';
	assert_int_equal(get_path(name, true, &err), GPUL_EINVAL);
	name[107] = '\0';
	assert_int_equal(get_path(name, true, &err), GPUL_OK);
}

static void the_folder_is_created_with_mode_0700(void **state)
{
	struct stat s;
	gpul_error err;

	(void)state;
	umask(0);
	rmdir(ours);
	assert_int_equal(get_path("n", false, &err), GPUL_OK); /* a missing folder is not an error */
	assert_int_equal(stat(ours, &s), -1);
	assert_int_equal(get_path("n", true, &err), GPUL_OK);
	assert_int_equal(stat(ours, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0700);
}

static void refuses_a_folder_that_others_can_enter(void **state)
{
	gpul_error err;

	(void)state;
	for (unsigned mode = 1; mode <= 040; mode <<= 1) {
		assert_int_equal(chmod(ours, 0700 | mode), 0);
		assert_int_equal(get_path("n", true, &err), GPUL_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "accessible to other users"));
		assert_int_equal(get_path("n", false, &err), GPUL_EUNSUPPORTED);
	}
	assert_int_equal(chmod(ours, 0700), 0);
	assert_int_equal(get_path("n", true, &err), GPUL_OK);
}

static void refuses_a_link_a_file_and_another_users_folder(void **state)
{
	char link[80], file[80];
	gpul_error err;

	(void)state;
	snprintf(link, sizeof link, "%s/link", top);
	snprintf(file, sizeof file, "%s/file", top);
	assert_int_equal(symlink(ours, link), 0);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	setenv("GPULOAD_RUNTIME_DIR", link, 1);
	assert_int_equal(get_path("n", true, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "symbolic link"));
	setenv("GPULOAD_RUNTIME_DIR", file, 1);
	assert_int_equal(get_path("n", true, &err), GPUL_EUNSUPPORTED);
	setenv("GPULOAD_RUNTIME_DIR", ours, 1);
	unlink(link);
	unlink(file);
	if (geteuid() == 0) {
		assert_int_equal(chown(ours, 12345, (gid_t)-1), 0);
		assert_int_equal(get_path("n", true, &err), GPUL_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "belongs to user 12345"));
		assert_int_equal(chown(ours, 0, (gid_t)-1), 0);
	}
}

static void the_environment_chooses_the_folder(void **state)
{
	char path[GPUL_IPC_PATH_BYTES], expected[128];

	(void)state;
	unsetenv("GPULOAD_RUNTIME_DIR");
	setenv("XDG_RUNTIME_DIR", top, 1);
	assert_int_equal(gpul_ipc_place("n", false, path, NULL), GPUL_OK);
	snprintf(expected, sizeof expected, "%s/gpuload/n.sock", top);
	assert_string_equal(path, expected);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(gpul_ipc_place("n", false, path, NULL), GPUL_OK);
	snprintf(expected, sizeof expected, "/tmp/gpuload-%u/n.sock", (unsigned)geteuid());
	assert_string_equal(path, expected);
	setenv("GPULOAD_RUNTIME_DIR", ours, 1);
}

static int create_socket(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static void lists_the_names_of_sockets_sorted(void **state)
{
	static const char *const files[] = { "b.sock", "a.sock", "a.lock", ".x.sock", "readme", "c d.sock", ".sock" };
	char path[GPUL_IPC_PATH_BYTES], **names = NULL;
	size_t n = 9;

	(void)state;
	for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", ours, files[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	assert_int_equal(gpul_ipc_places(&names, &n, NULL), GPUL_OK);
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "a");
	assert_string_equal(names[1], "b");
	free(names[0]);
	free(names[1]);
	free(names);
	for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", ours, files[i]);
		unlink(path);
	}
	setenv("GPULOAD_RUNTIME_DIR", "/nowhere/at/all", 1);
	assert_int_equal(gpul_ipc_places(&names, &n, NULL), GPUL_OK);
	assert_int_equal(n, 0);
	setenv("GPULOAD_RUNTIME_DIR", ours, 1);
}

static void a_second_owner_gets_the_pid_of_the_first(void **state)
{
	struct gpul_ipc_name first, second;
	char path[GPUL_IPC_PATH_BYTES], expected[64];
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_ipc_place("n", true, path, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_name_take(path, &first, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_name_take(path, &second, &err), GPUL_EUNSUPPORTED);
	assert_int_equal(second.lock_fd, -1);
	assert_int_equal(err.native, getpid());
	snprintf(expected, sizeof expected, "process %d already shares memory as", (int)getpid());
	assert_non_null(strstr(err.text, expected));
	gpul_ipc_name_release(&second); /* does nothing, because `second` owns no name */
	assert_int_equal(access(first.lock, F_OK), 0);
	gpul_ipc_name_release(&first);
	assert_int_equal(access(first.lock, F_OK), -1);
	assert_int_equal(gpul_ipc_name_take(path, &second, NULL), GPUL_OK);
	gpul_ipc_name_release(&second);
}

/* Take and release the name repeatedly; count how often this process was the only owner. */
static void take_repeatedly(const char *path, int counter)
{
	int taken = 0;

	while (taken < 200) {
		struct gpul_ipc_name name;
		int inside = 0;

		if (gpul_ipc_name_take(path, &name, NULL))
			continue;
		if (pread(counter, &inside, sizeof inside, 0) != (ssize_t)sizeof inside || inside != 0)
			_exit(1);
		inside = 1;
		if (pwrite(counter, &inside, sizeof inside, 0) < 0)
			_exit(1);
		inside = 0;
		if (pwrite(counter, &inside, sizeof inside, 0) < 0)
			_exit(1);
		gpul_ipc_name_release(&name);
		taken++;
	}
	_exit(0);
}

static void a_removed_lock_file_does_not_allow_two_owners(void **state)
{
	char path[GPUL_IPC_PATH_BYTES], file[96];
	int counter, zero = 0, status;
	pid_t child[4];

	(void)state;
	snprintf(file, sizeof file, "%s/counter", top);
	counter = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(write(counter, &zero, sizeof zero), sizeof zero);
	assert_int_equal(gpul_ipc_place("raced", true, path, NULL), GPUL_OK);
	for (int i = 0; i < 4; i++) {
		child[i] = fork();
		if (child[i] == 0)
			take_repeatedly(path, counter);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	close(counter);
	unlink(file);
}

static void clears_files_of_ended_owners_only(void **state)
{
	struct gpul_ipc_name name;
	char path[GPUL_IPC_PATH_BYTES];
	bool cleared = true;
	int fd;

	(void)state;
	assert_int_equal(gpul_ipc_place_clear("n", &cleared, NULL), GPUL_OK);
	assert_false(cleared);
	assert_int_equal(gpul_ipc_place("n", true, path, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_name_take(path, &name, NULL), GPUL_OK);
	fd = create_socket(path);
	assert_int_equal(gpul_ipc_place_clear("n", &cleared, NULL), GPUL_OK);
	assert_false(cleared);
	assert_int_equal(access(path, F_OK), 0);
	close(name.lock_fd); /* the end of the process would close it, too */
	close(fd);
	assert_int_equal(gpul_ipc_place_clear("n", &cleared, NULL), GPUL_OK);
	assert_true(cleared);
	assert_int_equal(access(name.socket, F_OK), -1);
	assert_int_equal(access(name.lock, F_OK), -1);
}

static void clears_the_lock_of_an_owner_that_ended_before_it_had_a_socket(void **state)
{
	struct gpul_ipc_name name;
	char path[GPUL_IPC_PATH_BYTES], elsewhere[GPUL_IPC_PATH_BYTES];
	bool cleared = true;

	(void)state;
	assert_int_equal(gpul_ipc_place("n", true, path, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_name_take(path, &name, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_place_clear("n", &cleared, NULL), GPUL_OK);
	assert_false(cleared);
	assert_int_equal(access(name.lock, F_OK), 0);
	close(name.lock_fd); /* the end of the process would close it, too */
	assert_int_equal(gpul_ipc_place_clear("n", &cleared, NULL), GPUL_OK);
	assert_true(cleared);
	assert_int_equal(access(name.lock, F_OK), -1);

	snprintf(elsewhere, sizeof elsewhere, "%s/x.sock", top); /* with a path instead of a name, x.lock may belong to another program */
	assert_int_equal(gpul_ipc_name_take(elsewhere, &name, NULL), GPUL_OK);
	close(name.lock_fd);
	assert_int_equal(gpul_ipc_place_clear(elsewhere, &cleared, NULL), GPUL_OK);
	assert_false(cleared);
	assert_int_equal(unlink(name.lock), 0);
}

static void does_not_touch_a_lock_file_of_another_type(void **state)
{
	struct gpul_ipc_name name;
	char path[GPUL_IPC_PATH_BYTES], file[96], lock[128], text[8] = "";
	gpul_error err = { 0 };
	int fd;

	(void)state;
	assert_int_equal(gpul_ipc_place("n", true, path, NULL), GPUL_OK);
	snprintf(lock, sizeof lock, "%s/n.lock", ours);
	snprintf(file, sizeof file, "%s/precious", top);
	fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "kept", 4), 4);
	assert_int_equal(symlink(file, lock), 0);
	assert_int_equal(gpul_ipc_name_take(path, &name, &err), GPUL_ESYS);
	assert_int_equal(err.native, ELOOP);
	unlink(lock);
	assert_int_equal(link(file, lock), 0);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_name_take(path, &name, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "is left as it is"));
	assert_int_equal(pread(fd, text, sizeof text, 0), 4);
	assert_string_equal(text, "kept");
	close(fd);
	unlink(lock);
	unlink(file);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/gpuload-test-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(ours, sizeof ours, "%s/run", top);
	return setenv("GPULOAD_RUNTIME_DIR", ours, 1);
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(rmdir(ours), 0); /* succeeds because the folder is empty */
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_letters_digits_dots_underscores_and_hyphens),
		cmocka_unit_test(refuses_a_path_too_long_for_a_socket),
		cmocka_unit_test(the_folder_is_created_with_mode_0700),
		cmocka_unit_test(refuses_a_folder_that_others_can_enter),
		cmocka_unit_test(refuses_a_link_a_file_and_another_users_folder),
		cmocka_unit_test(the_environment_chooses_the_folder),
		cmocka_unit_test(lists_the_names_of_sockets_sorted),
		cmocka_unit_test(a_second_owner_gets_the_pid_of_the_first),
		cmocka_unit_test(a_removed_lock_file_does_not_allow_two_owners),
		cmocka_unit_test(clears_files_of_ended_owners_only),
		cmocka_unit_test(clears_the_lock_of_an_owner_that_ended_before_it_had_a_socket),
		cmocka_unit_test(does_not_touch_a_lock_file_of_another_type),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
