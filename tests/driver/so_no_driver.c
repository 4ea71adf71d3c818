/* so_no_driver.c — a library with the name of the driver that is not a driver. */
int not_a_driver(void);

int not_a_driver(void)
{
	return 1;
}
