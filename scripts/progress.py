"""progress.py — shows the progress of a download or an installation: one line that is rewritten
on a terminal, else plain lines."""
import shutil, sys


class Progress:
    """On a terminal, show() rewrites one line.  Elsewhere it prints one line for each task, without the amount."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.terminal = self.out.isatty()
        self.task = None         # task of the last call of show()
        self.unfinished = False  # True: the last line on the terminal has no line end yet

    def show(self, task, amount, part=""):
        """Show the progress of a task, for example show("downloading packages", "40 %", "file 3 of 60")."""
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            self.out.write(f"\r\033[K{f'{task}: {amount}  {part}'[:width]}")
            self.unfinished = True
        elif task != self.task:
            self.out.write(f"{task}\n")
        self.task = task
        self.out.flush()

    def end(self):
        """Remove the line of the last call of show() from the terminal."""
        if self.unfinished:
            self.out.write("\r\033[K")
            self.out.flush()
            self.unfinished = False
