"""An independent implementation of the written interface that fails by plan, with a record of its own as evidence.

plan = Plan(rules=(Rule("*", "answer_lost", share=0.1), Rule("jobs/get", "status", {"code": 503}, nth=(1, 2))))
with Hostile(plan, tmp_path) as hostile:           # in a thread; change(plan)
    run_patternmill(env=hostile.environment)
    evidence = audit(hostile.record, rows)
assert evidence.double_purchases == ()
assert evidence.wrong_products(product_id_by_sku) == []
assert evidence.unfired(plan) == []                # a fault that never fired proves nothing
"""

from tests.hostile.audit import Audit, ExpectedRow, audit
from tests.hostile.plan import Plan, Rule, Times
from tests.hostile.service import HostileService
from tests.hostile.thread import Hostile

__all__ = ["Audit", "ExpectedRow", "Hostile", "HostileService", "Plan", "Rule", "Times", "audit"]
