import sys
from pathlib import Path

# The signals and readers that these tests share lie beside them.
sys.path.insert(0, str(Path(__file__).parent))
