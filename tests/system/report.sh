#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The page of dcpireport in Chromium and Firefox: no complaint in its console and no request of anything; search, order, filter,
# the way down to an instruction, source beside it, flow graph, calls, map, comparison, keyboard, narrow and printed;
# names and sources that would be markup, scripts or controls elsewhere are text. In Chromium, of each section: contrast in
# light, in dark and on paper, what a screen reader is told, and what a finger meets on a phone.
set -eu
for tool in chromium firefox-esr python3; do
	command -v $tool >/dev/null || { echo "skip: needs $tool"; exit 77; }
done
. "$DCPI_SRC/tests/support/paths-db.sh"

# The image is changed: a database of before, with other shares.
"$mkdb" before <<-END
	platform box
	epoch 1690000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 40
	at warm 300
	finish
END
printf 'x </script><script>alert(1)</script> <img src=x onerror=alert(1)>\na \342\200\256 b \377 \033[31m\n' >evil.c
"$mkdb" hostile </dev/null
"$DCPI_BIN/../tests/mkjob" hostile/dyn/evil.box.1.dyn >/dev/null <<-END
	image 62 evil 4711 box /opt/evil
	run 0x7f0000001000 0 0x1000
	file ./evil.c
	line 0 1 0
	line 2 2 0
	routine 0x7f0000001040 <img/src=x/onerror=alert(1)></script><script>alert(1)</script> 89f8c3
END
"$mkdb" hostile <<-END
	platform box
	epoch 1700000000
	profile dynamic evil.box.1.dyn
	event cpu-clock 1000000
	at 0x40 5
	at 0x42 6
	workload one comm=<b>evil</b> uid=4711
	workload two comm=two uid=4711
	w one cpu-clock 0 5 0x40@evil.box.1.dyn
	w two cpu-clock 2 4 0x42@evil.box.1.dyn
	profile file /opt/<b>bold</b>/$(printf '\342\200\256\377') $app/app
	id eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
	event cpu-clock 1000000
	at 0x10 7
	finish
END
dcpireport() { "$DCPI_BIN/dcpireport" "$@" 2>err || { cat err; exit 1; }; }
dcpireport -diff before -o paths.html
dcpireport -db hostile -o hostile.html
dcpireport -db before -diff_epoch latest -o same.html
printf 'platform box\nepoch 1700000000\nfinish\n' | "$mkdb" none
dcpireport -db none -o none.html

for browser in Chromium Firefox; do
PYTHONPATH=$DCPI_SRC/tests/support PYTHONDONTWRITEBYTECODE=1 python3 - "$work" $browser <<'END'
import sys
import browser
import seen

b = getattr(browser, sys.argv[2])()
here = "file://" + sys.argv[1] + "/"
rows = "[...document.querySelectorAll('[role=grid]')].pop().querySelectorAll('tbody tr:not(.spacer)')"
checks = 0


def see(code, want):
    global checks
    checks += 1
    b.wait("(" + code + ") === " + repr(want).replace("True", "true").replace("False", "false"))


def is_so(code):
    see("!!(" + code + ")", True)


# To a section, which is drawn then.
def go(part):
    b.run("location.hash = '#" + part + "'")
    is_so("document.querySelector('main').dataset.shown === location.hash")


PARTS = ("procedures", "images", "lines", "workloads", "time", "calls", "map", "changes", "unknown", "p0", "p0/flow",
         "p0/calls", "p7")


# All sections as people meet them, whatever their eyes, hands and machines.
def looked_at():
    global checks
    b.size(1280, 800)
    for dark in True, False:
        b.media(dark=dark)
        for part in PARTS:
            go(part)
            found = seen.contrast(b)
            assert (found["back"] < 0.05) == dark, (part, found)
            checks += 2
        # Frames above an enlarged one.
        go("calls")
        b.run("[...document.querySelectorAll('.plane button')].find((x) => x.textContent === 'warm').click()")
        is_so("document.querySelectorAll('.plane .faded').length > 0")
        seen.contrast(b)
        b.press("Escape")
    # On paper: black on white whatever the screen has, without what can only be pressed, and with all rows.
    b.media(paper=True, dark=True)
    for part in PARTS:
        go(part)
        b.run("dispatchEvent(new Event('beforeprint'))")
        found = seen.contrast(b, 7)
        assert found["back"] > 0.95, (part, found)
        is_so("[...document.querySelectorAll('nav, .bar, dialog')].every((e) => !e.getClientRects().length)")
        is_so("[...document.querySelectorAll('[role=grid]')].every((e) => e.querySelectorAll('tbody tr').length === e.rows.length - 1)")
        is_so("[...document.querySelectorAll('.scroll')].every((e) => e.scrollHeight <= e.clientHeight + 1)")
        b.run("dispatchEvent(new Event('afterprint'))")
    b.media()
    # A screen reader: all that can have the focus has a name, tables have rows and heads, pictures have tables.
    for part in PARTS:
        go(part)
        found = seen.spoken(b)
        checks += 1
    go("procedures")
    b.run("document.querySelector('[role=grid]').focus()")
    b.press("ArrowDown")
    found = seen.tree(b)
    (grid,) = [x for x in found if x[0] == "grid"]
    assert grid[1] == "procedures by samples" and grid[2].get("focused") and "activedescendant" in grid[2], grid
    heads = [name for role, name, *_ in found if role == "columnheader"]
    assert "procedure" in heads and "cpu-clock" in heads, heads
    assert any(role == "gridcell" and name == "hot" for role, name, *_ in found)
    assert any(role == "status" for role, *_ in found)
    go("p0/flow")
    assert len([1 for role, name, *_ in seen.tree(b) if role == "link" and name.startswith("block ")]) == 5
    go("calls")
    assert any(role == "button" and name.startswith("warm, ") for role, name, *_ in seen.tree(b))
    # A phone of 320 pixels: nothing is wider, and a finger meets what is to be pressed.
    b.size(320, 640)
    for part in PARTS:
        go(part)
        is_so("document.documentElement.scrollWidth <= innerWidth")
        small = b.run(seen.SMALL)
        assert not small, (part, small)
        checks += 1
    checks += 5


try:
    b.open(here + "paths.html")
    see("document.title", "DCPI report: paths")
    see("document.querySelector('[role=grid]').getAttribute('aria-rowcount')", "9")
    see(rows + "[0].cells[5].textContent", "hot")
    # Search, from the keyboard; the first row that is found opens.
    b.press("/")
    see("document.activeElement.id", "search")
    b.type("FIB")
    see(rows + ".length", 1)
    is_so("/1 of 8 rows, 19.53 %/.test(document.querySelector('[role=status]').textContent)")
    b.press("Enter")
    b.press("Enter")
    see("location.hash", "#p2")
    is_so("document.querySelector('h2').textContent === 'fib'")
    b.press("Escape")
    see("location.hash", "#procedures")
    see("document.getElementById('search').value", "FIB")
    b.press("Escape")
    see(rows + ".length", 8)
    # Order by name, and the other way.
    b.run("[...document.querySelectorAll('th button')].find((x) => x.textContent === 'procedure').click()")
    see(rows + "[0].cells[5].textContent", "(idle)")
    b.run("[...document.querySelectorAll('th button')].find((x) => x.textContent === 'procedure').click()")
    see(rows + "[0].cells[5].textContent", "warm")
    see("document.querySelector('th[aria-sort]').getAttribute('aria-sort')", "descending")
    # One image alone.
    b.run("const s = document.querySelector('select'); s.value = '1'; s.dispatchEvent(new Event('change'))")
    see("[..." + rows + "].map((r) => r.cells[5].textContent).sort().join()", "fib,outer")
    b.press("Escape")
    # Arrows and Enter lead to a procedure: its hottest instruction is the active one, its source line stands beside.
    b.run("document.querySelector('[role=grid]').focus()")
    b.press("ArrowDown")
    b.press("ArrowDown")
    b.press("ArrowUp")
    b.press("Enter")
    see("location.hash", "#p0")
    is_so("/addl    %eax, %edx/.test(document.querySelectorAll('.panes tr.active')[1].textContent)")
    is_so("/sum \\+= i \\* 3/.test(document.querySelectorAll('.panes tr.active')[0].textContent)")
    is_so("/200/.test(document.querySelector('h2 + p').textContent)")
    is_so("/medium confidence/.test(document.querySelector('.panes').textContent)")
    b.press("ArrowDown")
    is_so("/addl    \\$3, %eax/.test(document.querySelectorAll('.panes tr.active')[1].textContent)")
    # The flow graph: as many boxes as blocks, one of which leads to its instructions.
    b.press("f")
    see("document.querySelectorAll('.graph svg a').length", 5)
    is_so("document.querySelectorAll('.graph svg path').length > 5")
    is_so("document.querySelectorAll('details tbody tr').length === 13")
    b.run("document.querySelectorAll('.graph svg a')[3].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    see("location.hash", "#p0/i9")
    is_so("/movl    %edx, %eax/.test(document.querySelectorAll('.panes tr.active')[1].textContent)")
    b.press("c")
    is_so("/Called by/.test(document.querySelector('main').textContent)")
    # Lines: the hottest one first, Enter leads to its hottest instruction.
    b.press("3")
    see(rows + "[0].cells[2].textContent", "app.c:17")
    see(rows + "[0].cells[0].textContent", "150")
    is_so("/sum \\+= i \\* 3/.test(" + rows + "[0].cells[3].textContent)")
    b.press("/")
    b.type("16")
    see(rows + ".length", 1)
    b.press("Enter")
    b.press("Enter")
    is_so("/^#p0.i/.test(location.hash)")
    see("[...document.querySelectorAll('.panes tr.active')].map((r) => r.cells[0].textContent).join()", "50,50")
    # Whose the samples are, and when, this database does not have.
    b.press("4")
    is_so("/Not known: no processes and minutes were kept/.test(document.querySelector('main').textContent)")
    b.press("5")
    is_so("/Not known: no processes and minutes were kept/.test(document.querySelector('main').textContent)")
    # Calls: a frame enlarges, Esc shows all, search tells its part.
    b.press("6")
    see("location.hash", "#calls")
    see("document.querySelectorAll('.plane button')[0].textContent", "all samples")
    b.run("[...document.querySelectorAll('.plane button')].find((x) => x.textContent === 'warm').click()")
    is_so("/warm/.test(document.querySelector('h3').textContent)")
    b.press("Escape")
    is_so("/all samples/.test(document.querySelector('h3').textContent)")
    b.press("/")
    b.type("sys_read")
    is_so("/% in frames that match/.test(document.querySelector('[role=status]').textContent)")
    b.press("Escape")
    # Map: images, procedures, lines.
    b.run("document.activeElement.blur()")
    b.press("7")
    is_so("document.querySelectorAll('.plane a').length > 5")
    b.run("[...document.querySelectorAll('.plane a')].find((x) => /^hot/.test(x.title)).click()")
    is_so("[...document.querySelectorAll('.plane a')].some((x) => /app.c:17/.test(x.title))")
    # Changes: the largest first, with its size in points.
    b.press("8")
    see(rows + "[0].cells[4].textContent", "warm")
    is_so("/^-82.38/.test(" + rows + "[0].cells[2].textContent)")
    b.press("9")
    is_so("/lib.so/.test(document.querySelector('main').textContent)")
    is_so("/medium or higher confidence cover/.test(document.querySelector('main').textContent)")
    b.press("?")
    is_so("document.querySelector('dialog').open")
    b.press("Escape")
    is_so("!document.querySelector('dialog').open")
    # Narrow, and printed: nothing is wider than the page, all rows are there.
    b.size(390, 800)
    for part in "procedures", "images", "lines", "p0", "map", "changes", "calls", "unknown":
        go(part)
        is_so("document.documentElement.scrollWidth <= innerWidth")
    b.run("location.hash = '#procedures'")
    is_so("document.querySelector('[role=grid]')")
    assert len(b.printed()) > 10000

    if hasattr(b, "media"):
        looked_at()
    b.size(1280, 800)
    b.open(here + "hostile.html")
    is_so("/^<img\\/src=x/.test(document.querySelector('tbody a').textContent)")
    b.run("document.querySelector('tbody a').click()")
    is_so("/x <\\/script><script>alert\\(1\\)/.test(document.querySelector('.panes').textContent)")
    is_so("/a <U\\+202E> b <FF> <U\\+001B>/.test(document.querySelector('.panes').textContent)")
    see("document.querySelectorAll('img, b').length", 0)
    see("document.querySelectorAll('script').length", 2)
    for part in "images", "lines", "workloads", "time", "map", "calls", "unknown", "p0/flow", "p0/calls", "p77", "p-1", "nonsense/%00<img>":
        go(part)
        see("document.querySelectorAll('img, b').length", 0)
    # Workloads: rows by each key, and what is not recorded; they add up to the 18 samples of the database.
    b.press("4")
    see("[..." + rows + "].map((r) => r.cells[0].textContent + ' ' + r.cells[3].textContent).join()",
        "9 (not recorded),5 <b>evil</b>,4 two")
    b.run("const s = document.querySelector('select'); s.value = '1'; s.dispatchEvent(new Event('change'))")
    see("[..." + rows + "].map((r) => r.cells[0].textContent + ' ' + r.cells[3].textContent).join()",
        "9 4711,9 (not recorded)")
    # Time: three minutes, one of them without samples; the picture has a table.
    b.press("5")
    see("document.querySelectorAll('.times rect').length", 2)
    see("[...document.querySelectorAll('details tbody tr')].map((r) => [...r.cells].slice(1).map((c) => c.textContent).join()).join('|')",
        "5,5,|not recorded,,|4,,4")
    b.size(390, 800)
    for part in "workloads", "time":
        go(part)
        is_so("document.documentElement.scrollWidth <= innerWidth")
    b.size(1280, 800)
    # Without a difference nothing has changed; without samples that is said.
    b.open(here + "same.html")
    b.press("8")
    see(rows + "[0].cells[2].textContent", "~ 0.00")
    b.open(here + "none.html")
    is_so("/No samples/.test(document.querySelector('main').textContent)")
    complaints = b.complaints + [r for r in b.requests if r != "about:blank" and not r.startswith(here)]
    assert not complaints, complaints
    print(sys.argv[2] + ":", checks, "checks")
finally:
    b.close()
END
done
