"""Does a server give a model what it is sent? Made-up inputs with known answers say so.

    probes -> questions -> the loop that runs benchmarks -> replies -> findings -> certificate

A wrong answer tells its cause: places that fit a picture of another size, digits of the first
picture alone, a count of beeps that ends at 30 s.
"""

from omnidata.certify.certificate import Certificate, certify, count_requests

__all__ = ["Certificate", "certify", "count_requests"]
