"""Random sums of products of two complex arrays, of which some are conjugated or real."""

from __future__ import annotations

from random import Random

HEAD = """
space o occupied
space v virtual
index i j k l : o
index a b c d : v
"""
PRIMES = ((2, 7), (3, 11), (5, 13), (7, 3))


def random_products(random: Random) -> str:
    """A spec: one or two products that add to one result, with the same rows and columns."""
    letters = random.sample("ijkl", 3) + random.sample("abcd", 3)
    random.shuffle(letters)
    batch, letters = letters[: (few := random.random() < 0.3)], letters[few:]
    m, n, inner = letters[:2], letters[2:4], letters[4:]
    m, n = (group[: random.randint(1, 2)] for group in (m, n))
    target = shuffled([*batch, *m, *n], random)
    lines, terms = list[str](), ""
    for number in range(random.randint(1, 2)):
        factors = []
        for name, own in ((f"x{number}", m), (f"y{number}", n)):
            subscripts = shuffled([*batch, *own, *inner], random)
            spaces = ",".join("o" if x in "ijkl" else "v" for x in subscripts)
            kind = random.choice(("plain", "plain", "conjugated", "conjugated", "real"))
            lines.append(f"input {name}[{spaces}]{' real' if kind == 'real' else ''}")
            element = f"{name}[{','.join(subscripts)}]"
            factors.append(f"conj({element})" if kind == "conjugated" else element)
        sign = random.choice(("", "2*", "-", "-3*", "1/2*"))
        join = "" if sign.startswith("-") or not terms else "+ "
        terms += f" {join}{sign}{'*'.join(shuffled(factors, random))}"
    body = f"output r\nr[{','.join(target)}] ={terms}\n"
    return "\n".join([HEAD, *lines, body])


def shuffled(items: list[str], random: Random) -> list[str]:
    """The items in another order."""
    return random.sample(items, len(items))
