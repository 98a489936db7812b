"""Ports code from native libraries to the namespace of ops: rewrites what is exact, marks and lists the rest."""

from emberlint.port.rewrite import Ported as Ported
from emberlint.port.rewrite import port as port
