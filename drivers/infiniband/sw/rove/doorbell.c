// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * doorbell.c - posting without a system call
 *
 * A program that posts makes a wake-up call only if the ring's NEED_WAKEUP flag
 * is set.  The call handles the ring there and then, in the program's context: for
 * a program that waits for each answer nothing is faster.
 *
 * A program that streams need not call at all.  The flag is clear
 *  - while the QP is queued for its home CPU (defer.c), which is going to look;
 *  - while posted work waits in the ring for the window, for credits or the
 *    like: the packet or timer that ends the wait looks at the ring;
 *  - while the look-again window is open, and something is under way: the
 *    acknowledgment looks at the ring, as often as the peer can take more.  The
 *    window opens when posts come in a row without the program having waited
 *    for anything in between, each too small to be worth the call, and
 *    closes when the program has changed to a few at a time, or posts nothing
 *    more while the peer is long in answering.  If it was of use before such a
 *    pause, the first post after it opens it again.
 *
 * A timer looks as well, often if that is what finds the posts (a peer far away) and
 * seldom if the acknowledgments find them: an interrupt costs more than the
 * call.  With nothing under way the next post makes a call, and is the one whose
 * acknowledgment looks for those behind it.  Where that comes back before the call
 * is over (both ends on one CPU, say) it would find none: there the timer has to
 * do, at an interval of its own, and the window closes when it finds nothing for
 * WINDOW_MAX_NS.  Acknowledgments that find more than fits into the ring show that
 * they do come later than the next posts.
 *
 * A program that streams on many QPs posts a few on one and goes on to the next.  If each were
 * sent at once it would also complete alone, and the program would come back for it
 * alone.  So where it has completions of several QPs to take, and does not wait therefore,
 * a call opens the window and sends nothing: the timer finds the posts that follow it.
 * Only within this machine: nothing is gained by it elsewhere, where the first
 * can be on its way meanwhile.
 *
 * The flag and the ring's producer index are a Dekker pair: the program
 * stores the index, fences, loads the flag; we store the flag, fence, load the index.
 *
 * Programs that take turns (one asks, one answers) would have an acknowledgment cross the
 * network in between, and the answer behind it.  Where each message has been answered
 * soon, by a program that polls, the acknowledgment waits for the next answer to share
 * its train; the timer sends it when none comes.
 *
 * One flag a QP rather than one a context: a streaming QP must not make a
 * latency-bound one of the same program wait for the next tick.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include "compat.h"
#include "defer.h"
#include "doorbell.h"
#include "qp.h"
#include "transport/env.h"

/* Between two ticks of the timer, at first and in the extremes. */
#define LOOK_NS		(50 * NSEC_PER_USEC)
#define LOOK_MIN_NS	(10 * NSEC_PER_USEC)
/* The same, where a program has completions to take and so waits for none of them. */
#define HELD_MAX_NS	(250 * NSEC_PER_USEC)
/* A pause after which the program is thought to do something else. */
#define WINDOW_MAX_NS	(1 * NSEC_PER_MSEC)
/* Ticks that found few posts and nothing under way: the program waits for these. */
#define WINDOW_FEWS	2
/* Ticks before which nothing had been posted: the peer may be long in answering. */
#define WINDOW_VAIN	32
/* The same, when the program is busy with other QPs. */
#define WINDOW_VAIN_BUSY 2
/* Posts in a row that open it. */
#define WINDOW_POSTS	3
/* Work requests posted together that are worth a wake-up call. */
#define WINDOW_LIST	16
/* Messages that a program has answered soon, each before the next came, at first and at most. */
#define ANSWERS		8
#define ANSWERS_MAX	128
/* So many, and one is acknowledged at once: would the next message come before the answer? */
#define ANSWERS_TRY	U8_MAX
/* How long an acknowledgment waits for the next answer, and so what is soon. */
#define ANSWER_NS	(1 * NSEC_PER_MSEC)
/*
 * It may wait for so much longer, for another timer's interrupt to share: while programs take
 * turns each one makes some message late.  With ANSWER_NS less than what makes the peer ask.
 */
#define ANSWER_SLACK_NS	(2 * NSEC_PER_MSEC)

static void set_need_wakeup(struct rove_ring *ring, bool need)
{
	WRITE_ONCE(ring->hdr->flags, need ? ROVE_RING_NEED_WAKEUP : 0);
}

/* At the earliest in @ns. */
static void start_wait(struct rove_qp *qp, u64 ns)
{
	hrtimer_start_range_ns(&qp->window, ns_to_ktime(ns), ANSWER_SLACK_NS,
			       HRTIMER_MODE_REL_SOFT);
}

/* Let the transport send; what is found posted answers a message that has come. */
static void send(struct rove_qp *qp)
{
	struct rove_doorbell *db = &qp->db;
	u64 now = ktime_get_ns();

	if (db->asked_at && rove_env_sq_pending(&qp->t)) {
		if (now - db->asked_at > ANSWER_NS)
			db->answers = 0;
		else if (db->answers < ANSWERS_TRY)
			db->answers++;
		db->asked_at = 0;
		/* It was worth waiting. */
		if (qp->t.resp.ack_held)
			db->enough = ANSWERS;
	}
	rove_tqp_send(&qp->t, now);
}

void rove_doorbell_run(struct rove_qp *qp)
{
	if (qp->t.state == ROVE_TQP_ERR)
		rove_tqp_flush(&qp->t);
	else
		send(qp);
	rove_doorbell_settle(qp);
}

bool rove_doorbell_expects(struct rove_qp *qp, u64 now)
{
	struct rove_doorbell *db = &qp->db;

	if (!qp->sq.depth)
		return false;
	/* Two, and no answer between them; or what is sent next is none. */
	if (db->asked_at || qp->t.req.cur != qp->t.req.fetched)
		db->answers = 0;
	/* Posted before, or the answer already: not known. */
	db->asked_at = rove_env_sq_pending(&qp->t) ? 0 : now;
	if (!db->asked_at || db->answers < db->enough || db->open ||
	    qp->deferring || qp->dead)
		return false;
	if (db->answers == ANSWERS_TRY) {
		db->answers = db->enough;
		return false;
	}
	/* The peer must not take it for a loss; its timeout is likely ours. */
	if (qp->t.timeout && (4096ULL << qp->t.timeout) < 2 * (ANSWER_NS + ANSWER_SLACK_NS))
		return false;
	/* Who sleeps is some time in waking up, and the peer has nothing to do meanwhile. */
	if (rove_cq_armed(to_rcq(qp->ibqp.recv_cq)))
		return false;
	/* It goes on running when the answer comes: one interrupt for many messages. */
	if (!hrtimer_is_queued(&qp->window))
		start_wait(qp, ANSWER_NS);
	return true;
}

/* The timer has run while an acknowledgment waits: it may be of a later message. */
static void expect_on(struct rove_qp *qp)
{
	u64 waited = ktime_get_ns() - qp->db.asked_at;

	if (waited < ANSWER_NS) {
		start_wait(qp, ANSWER_NS - waited);
		return;
	}
	/* In vain, and the peer has waited as well: not so soon again. */
	qp->db.answers = 0;
	qp->db.enough = min(2 * qp->db.enough, ANSWERS_MAX);
	if (rove_at_home(qp))
		send(qp);
	else
		rove_defer(qp);
}

/* @again: for a program that comes back: with what has been learnt of it. */
static void open_window(struct rove_qp *qp, bool again)
{
	struct rove_doorbell *db = &qp->db;

	if (!again || !db->ticks[true].interval) {
		db->fews = 0;
		db->ticks[false] = (struct rove_ticks){ .interval = LOOK_NS };
		db->ticks[true] = db->ticks[false];
	}
	db->open = true;
	db->sync = false;
	db->dozes = false;
	db->in_row = 0;
	db->vain = 0;
	db->posted = qp->t.req.fetched;
	/* It may be set for an acknowledgment, later than that. */
	hrtimer_try_to_cancel(&qp->window);
}

/* Is somebody sure to look at the ring although nothing waits in it? */
static bool window_looks(struct rove_qp *qp)
{
	struct rove_doorbell *db = &qp->db;
	bool acked;

	if (!db->open)
		return false;
	acked = rove_tqp_acked(&qp->t);
	if (acked && !READ_ONCE(db->sync))
		return false;
	/* Once all is acknowledged the timer alone looks, and at another time than before. */
	if (!hrtimer_is_queued(&qp->window) || (acked && !db->alone)) {
		db->alone = acked;
		hrtimer_start(&qp->window, ns_to_ktime(db->ticks[acked].interval),
			      HRTIMER_MODE_REL_SOFT);
	}
	return true;
}

/* Is somebody going to look at the send ring?  True: it has changed. */
static bool set_watched(struct rove_qp *qp, bool watched)
{
	if (watched == qp->db.watched)
		return false;
	qp->db.watched = watched;
	set_need_wakeup(&qp->sq, !watched);
	return true;
}

void rove_doorbell_settle(struct rove_qp *qp)
{
	int pass;

	/*
	 * Who takes turns has its own acknowledged by now, at the end of the train.  Otherwise
	 * the peer may hold what we wait for, as we hold what it waits for.
	 */
	if (unlikely(qp->t.resp.ack_held && !rove_tqp_acked(&qp->t))) {
		qp->db.answers = 0;
		rove_defer(qp);
	}
	if (!qp->user || !qp->sq.depth || qp->dead)
		return;
	for (pass = 0; qp->t.state != ROVE_TQP_ERR; pass++) {
		bool pending = rove_env_sq_pending(&qp->t);
		/* Where it is queued for, it comes here afterwards. */
		bool watch = test_bit(0, &qp->defer_queued) || window_looks(qp) ||
			     (pending && rove_tqp_waits(&qp->t));

		if (watch || !pending) {
			if (!set_watched(qp, watch) || watch)
				return;
			/* Pairs with the program's fence after its post. */
			smp_mb();
			if (!rove_env_sq_pending(&qp->t))
				return;
		}
		/*
		 * Posted after the transport had found the ring empty, so
		 * nobody else will look: take it, and if the program posts as
		 * fast as we look, let it.
		 */
		if (!rove_at_home(qp)) {
			rove_defer(qp);
		} else if (pass < 2) {
			send(qp);
		} else {
			open_window(qp, false);
			qp->db.sync = true;
		}
	}
}

/* Has the program taken all completions?  @prod: how many there have been. */
static bool all_taken(struct rove_qp *qp, u32 *prod)
{
	struct rove_cq *cq = to_rcq(qp->ibqp.send_cq);
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&cq->lock, flags);
	*prod = cq->ring.prod;
	taken = READ_ONCE(cq->ring.hdr->cons) == *prod;
	spin_unlock_irqrestore(&cq->lock, flags);
	return taken;
}

/*
 * Has the CQ completions of several QPs?  A program that has some to take does not wait for
 * this one's then, and is soon to post for another.
 */
static bool shares_cq(const struct rove_qp *qp)
{
	/* One QP may use it twice. */
	return atomic_read(&qp->ibqp.send_cq->usecnt) > 2;
}

/*
 * Has the program waited for an answer since its last wake-up call?  @taken: has it taken
 * all completions, of which there have been @prod?
 */
static bool program_waited(struct rove_qp *qp, bool taken, u32 prod)
{
	struct rove_doorbell *db = &qp->db;
	/* A message has come in, or a completion, and has been taken. */
	bool waited = db->msn != qp->t.resp.msn || (taken && db->cq_prod != prod);

	db->msn = qp->t.resp.msn;
	db->cq_prod = prod;
	return waited;
}

/*
 * May a post wait for the next ones, of which a timer sends the row?  Another machine has
 * time for it now, and so has whoever waits for an acknowledgment that comes with it.
 */
static bool may_wait(const struct rove_qp *qp)
{
	const struct rove_doorbell *db = &qp->db;

	return (db->dozes || db->in_row > 1) && db->fews < WINDOW_FEWS &&
	       qp->local_peer && !qp->t.resp.ack_held &&
	       hrtimer_resolution <= LOOK_MIN_NS;
}

void rove_doorbell_wakeup(struct rove_qp *qp)
{
	struct rove_doorbell *db = &qp->db;
	bool hold = false;

	rove_count(qp->rdev, SQ_WAKEUP);
	if (!rove_qp_trylock(qp)) {
		/*
		 * Whoever has it may be at it for long: no reason to wait.  With
		 * softirqs on, the tasklet would be left to ksoftirqd.
		 */
		local_bh_disable();
		rove_defer(qp);
		local_bh_enable();
		return;
	}
	if (qp->user && qp->sq.depth && !db->open && !qp->dead &&
	    qp->t.state == ROVE_TQP_RTS) {
		if (rove_ring_avail(&qp->sq) >= WINDOW_LIST) {
			db->in_row = 0;
		} else {
			u32 prod;
			bool taken = all_taken(qp, &prod);

			db->in_row = program_waited(qp, taken, prod) ? 1 : db->in_row + 1;
			hold = !taken && shares_cq(qp) && may_wait(qp);
		}
		if (hold || db->dozes || db->in_row >= WINDOW_POSTS)
			open_window(qp, hold);
	}
	if (hold) {
		/* What is under way is acknowledged later than this. */
		db->sync = rove_tqp_acked(&qp->t);
		rove_doorbell_settle(qp);
	} else if (rove_at_home(qp)) {
		rove_doorbell_run(qp);
	} else {
		rove_defer(qp);
		rove_doorbell_settle(qp);
	}
	rove_qp_unlock(qp);
	/* Acknowledged already?  A guess: others may have it locked by now. */
	if (READ_ONCE(db->open) && data_race(rove_tqp_acked(&qp->t)))
		WRITE_ONCE(db->sync, true);
}

/*
 * What a tick finds decides on the next one, or that there is none.  One that comes while
 * something is under way tells nothing of when all is acknowledged, and the other way round.
 */
static void adapt(struct rove_qp *qp)
{
	struct rove_doorbell *db = &qp->db;
	bool acked = rove_tqp_acked(&qp->t);
	struct rove_ticks *ticks = &db->ticks[acked];
	u32 avail = max(rove_ring_avail(&qp->sq), 0);
	u32 posted = qp->t.req.fetched + avail;
	u32 found = avail;
	bool busy, few, sync;
	u32 prod;

	busy = shares_cq(qp) && !all_taken(qp, &prod);
	/*
	 * No find, if somebody else will look at them.  How many of them can be sent at once
	 * depends on their size, and says nothing.
	 */
	if (rove_tqp_waits(&qp->t) || test_bit(0, &qp->defer_queued))
		found = 0;
	/* More than fits in, posted and sent since the last tick: acknowledgments do find posts. */
	if (!acked && (s32)(qp->t.req.fetched - db->posted) > (s32)qp->sq.depth)
		db->sync = false;
	few = found && found < max(qp->sq.depth / 8, 2U);
	if (posted == db->posted) {
		db->vain++;
	} else {
		db->vain = 0;
		if (acked)
			db->fews = few ? db->fews + 1 : 0;
	}
	db->posted = posted;
	/*
	 * Too early once and then in time is as good as it gets.  With nothing under way the
	 * program may be waiting for what is found.
	 */
	if (busy && acked && found) {
		/* Many: it was at it still, and waits for none of them. */
		if (!few)
			ticks->interval = min(ticks->interval * 2, (u32)HELD_MAX_NS);
	} else if (found ? few && !acked :
			   ticks->early || ticks->interval > WINDOW_MAX_NS / 2) {
		ticks->interval = min(ticks->interval * 2, (u32)WINDOW_MAX_NS);
	} else if (!ticks->early && found > (acked ? 0 : qp->sq.depth / 2)) {
		ticks->interval = max(ticks->interval / 2, (u32)LOOK_MIN_NS);
	}
	ticks->early = !found;
	/* Several at a time: worth opening again after a pause. */
	db->dozes |= found > 1;
	/* Open it costs nothing where the next post makes a call anyway. */
	sync = READ_ONCE(db->sync);
	if (sync && db->fews >= WINDOW_FEWS) {
		db->open = false;
		db->dozes = false;
	} else if (db->vain >= (busy ? WINDOW_VAIN_BUSY : WINDOW_VAIN) ||
		   (sync && acked && !found && ticks->interval == WINDOW_MAX_NS)) {
		db->open = false;
	}
}

/* It is set again, if at all, by rove_doorbell_settle() or expect_on(). */
static enum hrtimer_restart window_tick(struct hrtimer *timer)
{
	struct rove_qp *qp = container_of(timer, struct rove_qp, window);
	u64 now = ktime_get_ns();

	/* Or it is being looked after, and will be once more. */
	if (rove_timers_late(now) || !rove_qp_trylock(qp)) {
		rove_defer(qp);
		return HRTIMER_NORESTART;
	}
	if (qp->t.resp.ack_held && qp->t.state != ROVE_TQP_ERR && !qp->dead) {
		expect_on(qp);
	} else if (qp->db.open && qp->t.state == ROVE_TQP_RTS && !qp->dead) {
		rove_count(qp->rdev, SQ_POLL);
		adapt(qp);
		if (rove_at_home(qp))
			send(qp);
		else
			rove_defer(qp);
	} else {
		qp->db.open = false;
	}
	rove_doorbell_settle(qp);
	rove_qp_unlock(qp);
	return HRTIMER_NORESTART;
}

void rove_doorbell_error(struct rove_qp *qp)
{
	qp->db.open = false;
	qp->db.watched = false;
	if (qp->sq.depth)
		set_need_wakeup(&qp->sq, true);
	if (qp->rq.depth)
		set_need_wakeup(&qp->rq, true);
	/* The flush that follows sees every post that did not see the flag. */
	smp_mb();
}

void rove_doorbell_reset(struct rove_qp *qp)
{
	qp->db = (struct rove_doorbell){ .enough = ANSWERS };
	if (qp->sq.depth)
		set_need_wakeup(&qp->sq, true);
	if (qp->rq.depth)
		set_need_wakeup(&qp->rq, false);
}

void rove_doorbell_init(struct rove_qp *qp)
{
	rove_hrtimer_setup(&qp->window, window_tick, CLOCK_MONOTONIC,
			   HRTIMER_MODE_REL_SOFT);
}

void rove_doorbell_stop(struct rove_qp *qp)
{
	hrtimer_cancel(&qp->window);
}
