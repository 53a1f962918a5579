"""Git repositories: cloned with the system's git, and read without a checkout.

Import it where it is needed: a search does not need it.
"""

from quire.sources.git.checkout import Checkout, checkout
from quire.sources.git.clone import clone_folder, remove_clones
from quire.sources.git.repository import Repository, is_repository, repository_of

__all__ = [
    "Checkout",
    "Repository",
    "checkout",
    "clone_folder",
    "is_repository",
    "remove_clones",
    "repository_of",
]
