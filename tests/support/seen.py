# SPDX-License-Identifier: BSD-2-Clause
"""What people see and hear of a page that Chromium shows: contrast of its texts, its accessibility tree, its size."""

# Text against what is painted behind it, as WCAG 2 computes it; a gradient counts as its first colour.
CONTRAST = r"""(() => {
    const parse = (text) => {
        const n = (text.match(/[\d.]+(e-?\d+)?/g) || []).map(Number), of = /^color\(srgb/.test(text) ? 255 : 1;
        return [n[0] * of, n[1] * of, n[2] * of, n.length > 3 ? n[3] : 1];
    };
    const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
    const light = (c) => {
        const [r, g, b] = c.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (el) => {
        const layers = [];
        for (let e = el; e; e = e.parentElement) {
            const style = getComputedStyle(e), first = /(rgba?\([^)]*\)|color\([^)]*\))/.exec(style.backgroundImage);
            if (first) layers.push(parse(first[1]));
            layers.push(parse(style.backgroundColor));
        }
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    // A box of the flow graph: its frame, and its heat above that.
    const inBox = (el) => [...el.parentElement.querySelectorAll("rect")].reduce((below, r) => {
        const style = getComputedStyle(r), fill = parse(style.fill);
        return over([...fill.slice(0, 3), fill[3] * Number(style.fillOpacity)], below);
    }, behind(el.ownerSVGElement));
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n; (n = walk.nextNode());) {
        const el = n.parentElement;
        if (!n.data.trim() || /^(SCRIPT|STYLE|NOSCRIPT|TITLE)$/i.test(el.tagName) || el.closest(".hidden, dialog:not([open])") ||
            !el.getClientRects().length || getComputedStyle(el).visibility !== "visible") continue;
        const style = getComputedStyle(el), below = el.ownerSVGElement ? inBox(el) : behind(el);
        let opacity = 1;
        for (let e = el; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
        const color = parse(el.ownerSVGElement ? style.fill : style.color), front = over([...color.slice(0, 3), color[3] * opacity], below);
        const [a, b] = [light(front), light(below)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
        found.push([ratio, n.data.trim().slice(0, 40), el.tagName + "." + (el.getAttribute("class") || "")]);
    }
    found.sort((x, y) => x[0] - y[0]);
    return { texts: found.length, worst: found.slice(0, 3), back: light(behind(document.body)) };
})()"""

# Things to press that a finger does not meet: smaller than 24 pixels, unless they stand within a text or a table.
SMALL = """[...document.querySelectorAll("button, select, input, nav a, summary")].filter((e) => {
    const r = e.getBoundingClientRect();
    return r.width && !e.closest(".plane") && (r.width < 24 || r.height < 24);
}).map((e) => e.outerHTML.slice(0, 80))"""

# What has no name of its own says nothing when it has the focus.
NAMED = {"button", "link", "searchbox", "textbox", "combobox", "menuitem", "grid", "table", "image", "img", "navigation",
         "dialog", "checkbox", "option", "DisclosureTriangle", "region"}


def contrast(b, least=4.5):
    """The lowest contrast of all texts; one that is hard to read is an error."""
    found = b.run(CONTRAST)
    assert found["texts"], "no text is seen"
    assert found["worst"][0][0] >= least, (b.run("location.hash"), found["worst"])
    return found


def tree(b):
    """The accessibility tree: [(role, name, {property: value})] of all that is not ignored."""
    nodes = b.ask("Accessibility.getFullAXTree")["nodes"]
    return [(n["role"]["value"], n.get("name", {}).get("value", ""),
             {p["name"]: p["value"].get("value") for p in n.get("properties", [])}) for n in nodes if not n["ignored"]]


def spoken(b):
    """What a screen reader has of the page; what has no name is an error."""
    found = tree(b)
    nameless = [(role, properties) for role, name, properties in found
                if not name.strip() and (role in NAMED or (properties.get("focusable") and role != "RootWebArea"))]
    assert not nameless, nameless
    roles = {role for role, *_ in found}
    assert {"main", "navigation", "banner"} <= roles, roles
    # The columns of a table have heads.
    assert "grid" not in roles or "columnheader" in roles, roles
    return found
