/* so_no_driver.c — a library that has the driver's file name and is something else. */
int not_a_driver(void);

int not_a_driver(void)
{
	return 1;
}
