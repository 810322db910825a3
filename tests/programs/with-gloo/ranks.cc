// SPDX-License-Identifier: BSD-3-Clause
// One rank of a program over gloo's transport ibverbs: ranks RANK SIZE FOLDER. The ranks meet in the folder,
// and compare what the collectives make of numbers that all of them know.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>
#include <vector>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

// Never destroyed, nor the memory that they use: gloo's buffers throw when a send has not completed (transport/ibverbs/buffer.cc), and no algorithm
// waits for that.
static std::vector<gloo::Algorithm *> algorithms;

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static void check(bool right, const char *what, size_t count)
{
	if (right)
		return;
	fprintf(stderr, "%s of %zu numbers came wrong\n", what, count);
	exit(1);
}

static void run(gloo::Algorithm *a)
{
	algorithms.push_back(a);
	a->run();
}

static int value(int rank, size_t i)
{
	return (int)(i % 1000) * (rank + 1) + rank;
}

template <typename Algorithm>
static void reduce(const Context &context, size_t count, const char *name)
{
	auto &mine = *new std::vector<int>(count), sum = std::vector<int>(count);
	for (size_t i = 0; i < count; i++) {
		mine[i] = value(context->rank, i);
		for (int r = 0; r < context->size; r++)
			sum[i] += value(r, i);
	}
	std::vector<int *> in = { mine.data() };
	run(new Algorithm(context, in, (int)count));
	check(mine == sum, name, count);
}

static void broadcast(const Context &context, size_t count)
{
	auto &mine = *new std::vector<int>(count), theirs = std::vector<int>(count);
	for (size_t i = 0; i < count; i++) {
		theirs[i] = value(1, i);
		mine[i] = context->rank == 1 ? theirs[i] : -1;
	}
	std::vector<int *> in = { mine.data() };
	run(new gloo::BroadcastOneToAll<int>(context, in, (int)count, 1));
	check(mine == theirs, "broadcast", count);
}

static void gather(const Context &context, size_t count)
{
	auto &mine = *new std::vector<int>(count), &all = *new std::vector<int>(count * context->size);
	for (size_t i = 0; i < count; i++)
		mine[i] = value(context->rank, i);
	std::vector<const int *> in = { mine.data() };
	run(new gloo::AllgatherRing<int>(context, in, all.data(), (int)count));
	for (size_t i = 0; i < all.size(); i++)
		check(all[i] == value((int)(i / count), i % count), "allgather", count);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	gloo::transport::ibverbs::attr attr;
	attr.name = "uwarp0";
	attr.port = 1;
	attr.index = 0;
	std::shared_ptr<gloo::transport::Device> device = gloo::transport::ibverbs::CreateDevice(attr);
	context->connectFullMesh(store, device);
	for (size_t count : { 4u, 1000u, 100000u, 1000000u }) {
		reduce<gloo::AllreduceRing<int>>(context, count, "allreduce, ring");
		reduce<gloo::AllreduceHalvingDoubling<int>>(context, count, "allreduce, halving");
		broadcast(context, count);
		gather(context, count);
	}
	run(new gloo::BarrierAllToAll(context));
	puts("all came right");
	fflush(stdout);
	_exit(0);
}
