"""Tables and arrays in files: reading, writing, and the roles of columns."""

from mercer.data.errors import FileError as FileError
from mercer.data.errors import MissingValues as MissingValues
from mercer.data.files.images import IMAGES as IMAGES
from mercer.data.files.read import NAMELESS as NAMELESS
from mercer.data.files.read import READERS as READERS
from mercer.data.files.read import read_source as read_source
from mercer.data.files.read import read_table as read_table
from mercer.data.files.read import split_path as split_path
from mercer.data.files.sql import redacted as redacted
from mercer.data.files.table import Request as Request
from mercer.data.files.table import Table as Table
from mercer.data.files.table import id_names as id_names
from mercer.data.files.write import WRITERS as WRITERS
from mercer.data.files.write import write_table as write_table
