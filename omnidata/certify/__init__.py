"""Check that a server passes its inputs to the model unchanged, with synthetic probes.

    probes -> questions -> the loop that runs benchmarks -> replies -> findings -> certificate

A wrong answer shows its cause: places that fit a picture of another size, the digits of only the
first picture, a count of beeps that ends at 30 s.
"""

from omnidata.certify.certificate import Certificate, certify, count_requests

__all__ = ["Certificate", "certify", "count_requests"]
