"""The page of a certificate: one HTML file that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jinja2

if TYPE_CHECKING:
    from omnidata.certify.certificate import Certificate

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Certificate of {{ found.model }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8886; padding: .3rem .6rem }
th, td { text-align: left; vertical-align: top }
.pass { color: light-dark(#17692f, #6ecf8a) } .fail { color: light-dark(#b3261e, #ff8a80) }
.fail, .pass { font-weight: 600 } small { color: #888 }
</style>
</head>
<body>
<h1>Certificate of <bdi>{{ found.model }}</bdi></h1>
<p>{{ states.pass }} pass, {{ states.fail }} fail, {{ states.unclear }} unclear,
{{ states["left out"] }} left out. {{ found.requests }} requests, {{ found.tokens }} tokens,
{{ found.date }}, omnidata {{ found.versions.omnidata }}.
{% if found.dialect %}Places in the words of {{ found.dialect }}.
{% else %}Places in {{ found.coordinates }}.{% endif %}
{% if found.reference %}Reference: <bdi>{{ found.reference }}</bdi>.{% endif %}</p>
<table>
<thead><tr><th scope="col">probe</th><th scope="col">result</th><th scope="col">right</th>
{% if found.reference %}<th scope="col">agreed</th>{% endif %}<th scope="col">what</th></tr></thead>
<tbody>
{% for each in found.findings %}
<tr><th scope="row">{{ each.probe }}</th><td class="{{ each.state }}">{{ each.state }}</td>
<td>{% if each.asked %}{{ each.right }} of {{ each.asked }}{% endif %}</td>
{% if found.reference %}<td>{% if each.probe in found.agreement %}\
{{ "%.0f" % (100 * found.agreement[each.probe]) }} %{% endif %}</td>{% endif %}
<td>{{ each.why or each.claim }}{% if each.fix %}<br><small>Fix: {{ each.fix }}</small>{% endif %}
</td></tr>
{% endfor %}
</tbody>
</table>
{% if found.differs %}
<h2>First difference: {{ found.differs.question }}</h2>
<table><tr><th scope="row">model</th><td><bdi>{{ found.differs.model }}</bdi></td></tr>
<tr><th scope="row">reference</th><td><bdi>{{ found.differs.reference }}</bdi></td></tr></table>
{% endif %}
<p><small>SHA-256 of certificate.json: {{ digest }}</small></p>
</body>
</html>
"""


def write_page(found: Certificate, digest: str) -> str:
    """Return the page of a certificate; what models wrote is escaped.

    Args:
        found: the certificate.
        digest: its hash, as `certificate.json` has it.
    """
    names = ("pass", "fail", "unclear", "left out")
    states = {name: sum(each.state == name for each in found.findings) for name in names}
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return made.from_string(_PAGE).render(found=found, states=states, digest=digest)
