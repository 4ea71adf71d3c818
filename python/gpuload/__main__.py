"""python -m gpuload: the command."""
from gpuload._command import main

main()
