"""python -m gpuload: runs the gpuload command."""
from gpuload._command import main

main()
