"""Ports code from native libraries to the namespace of ops: rewrites what is exact, marks and lists the rest.

A port rewrites only what a row of its table describes, and the tests run each row: the native call and the op on the
same samples. Conditions refuse what a row cannot tell, such as gradients of JAX by complex numbers, of which ops give
the conjugate. Results of ops have the methods of the library that the file was written for, if the file imported one
alone. The uses that are left are judged on the final text, so that a second port finds nothing to change.
"""

from emberlint.port.rewrite import Ported as Ported
from emberlint.port.rewrite import port as port
