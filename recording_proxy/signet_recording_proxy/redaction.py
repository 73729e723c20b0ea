from typing import Any
from signet_conformance.trace import encode
class Redactor:
    MIN_CANARY = 8
    def __init__(self, canaries): pass
    def header(self, h): return h
    def exchange(self, line): return encode(line)
    def text(self, t): return t
    def document(self, d): return d
    def canary_tokens(self): return {}
